import { PageFrame } from "../../app/PageFrame";

export function ApprovalsPage() {
  return <PageFrame title="ApprovalsPage">{null}</PageFrame>;
}
