import { Link } from "@tanstack/react-router";
import { EmptyList } from "../parts/Empty";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { PageFrame } from "./PageFrame";

export function Missing() {
  const words = useWords(commonWords);
  return (
    <PageFrame title="404">
      <EmptyList icon="unknown" title="404" text={words.error.missing}><Link className="btn" to="/">{words.error.toOverview}</Link></EmptyList>
    </PageFrame>
  );
}
