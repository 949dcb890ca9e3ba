import { PageFrame } from "../../app/PageFrame";

export function WorkersPage() {
  return <PageFrame title="WorkersPage">{null}</PageFrame>;
}
