import { PageFrame } from "../../app/PageFrame";

export function FlowsPage() {
  return <PageFrame title="FlowsPage">{null}</PageFrame>;
}
