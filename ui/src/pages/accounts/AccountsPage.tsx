import { PageFrame } from "../../app/PageFrame";

export function AccountsPage() {
  return <PageFrame title="AccountsPage">{null}</PageFrame>;
}
