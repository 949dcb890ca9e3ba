import { PageFrame } from "../../app/PageFrame";

export function StartPage() {
  return <PageFrame title="StartPage">{null}</PageFrame>;
}
