import { PageFrame } from "../../app/PageFrame";

export function QueuePage() {
  return <PageFrame title="QueuePage">{null}</PageFrame>;
}
