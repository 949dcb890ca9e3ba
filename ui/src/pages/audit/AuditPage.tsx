import { PageFrame } from "../../app/PageFrame";

export function AuditPage() {
  return <PageFrame title="AuditPage">{null}</PageFrame>;
}
