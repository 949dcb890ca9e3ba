import { PageFrame } from "../../app/PageFrame";

export function DeadLettersPage() {
  return <PageFrame title="DeadLettersPage">{null}</PageFrame>;
}
