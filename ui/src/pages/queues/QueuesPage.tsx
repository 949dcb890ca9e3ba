import { PageFrame } from "../../app/PageFrame";

export function QueuesPage() {
  return <PageFrame title="QueuesPage">{null}</PageFrame>;
}
