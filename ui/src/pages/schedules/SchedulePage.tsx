import { PageFrame } from "../../app/PageFrame";

export function SchedulePage() {
  return <PageFrame title="SchedulePage">{null}</PageFrame>;
}
