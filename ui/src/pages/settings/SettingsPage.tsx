import { PageFrame } from "../../app/PageFrame";

export function SettingsPage() {
  return <PageFrame title="SettingsPage">{null}</PageFrame>;
}
