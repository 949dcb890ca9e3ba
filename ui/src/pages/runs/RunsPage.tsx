import { PageFrame } from "../../app/PageFrame";

export function RunsPage() {
  return <PageFrame title="RunsPage">{null}</PageFrame>;
}
