import type { ReactNode } from "react";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { Boundary, ErrorPanel } from "./Errors";

/** Grey lines while the first answer is on its way. */
export function Skeleton({ lines = 4 }: { lines?: number }) {
  const words = useWords(commonWords).empty;
  return (
    <div className="skeleton" role="status" aria-label={words.loading}>
      {Array.from({ length: lines }, (_, n) => <i key={n} style={{ width: `${90 - ((n * 23) % 50)}%` }} />)}
    </div>
  );
}

interface Asked<T> { data: T | undefined; isError: boolean; error: unknown; refetch: () => unknown }

/** The three states of a query: loading, failed, there. A later failure keeps the data and shows the error above it. */
export function Panel<T>({ query, children, lines }: { query: Asked<T>; children: (data: T) => ReactNode; lines?: number }) {
  const retry = () => void query.refetch();
  if (query.data === undefined) return query.isError ? <ErrorPanel error={query.error} onRetry={retry} /> : <Skeleton lines={lines} />;
  return (
    <Boundary onRetry={retry} of={query.data}>
      {query.isError && <ErrorPanel error={query.error} onRetry={retry} />}
      <Content data={query.data}>{children}</Content>
    </Boundary>
  );
}

/** Within the boundary: an answer of an unexpected shape fails here. */
function Content<T>({ data, children }: { data: T; children: (data: T) => ReactNode }) {
  return children(data);
}
