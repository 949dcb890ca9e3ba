import { PageFrame } from "../../app/PageFrame";

export function FlowPage() {
  return <PageFrame title="FlowPage">{null}</PageFrame>;
}
