import { PageFrame } from "../../app/PageFrame";

export function OverviewPage() {
  return <PageFrame title="OverviewPage">{null}</PageFrame>;
}
