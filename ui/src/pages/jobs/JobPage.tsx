import { PageFrame } from "../../app/PageFrame";

export function JobPage() {
  return <PageFrame title="JobPage">{null}</PageFrame>;
}
