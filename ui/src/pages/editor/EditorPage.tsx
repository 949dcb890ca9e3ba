import { PageFrame } from "../../app/PageFrame";

export function EditorPage() {
  return <PageFrame title="EditorPage">{null}</PageFrame>;
}
