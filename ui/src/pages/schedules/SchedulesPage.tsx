import { PageFrame } from "../../app/PageFrame";

export function SchedulesPage() {
  return <PageFrame title="SchedulesPage">{null}</PageFrame>;
}
