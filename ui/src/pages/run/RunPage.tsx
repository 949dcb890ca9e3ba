import { PageFrame } from "../../app/PageFrame";

export function RunPage() {
  return <PageFrame title="RunPage">{null}</PageFrame>;
}
