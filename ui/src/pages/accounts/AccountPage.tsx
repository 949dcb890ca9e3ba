import { PageFrame } from "../../app/PageFrame";

export function AccountPage() {
  return <PageFrame title="AccountPage">{null}</PageFrame>;
}
