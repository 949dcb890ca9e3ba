import { Component, type ReactNode } from "react";
import { asApiError } from "../api/client";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { CopyButton } from "./Copy";
import { Icon } from "./Icon";
import { Marked } from "./Marked";

/** An error of the API: its code, its text, the places that are wrong, the request id and a retry. */
export function ErrorPanel({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const words = useWords(commonWords).error;
  const problem = asApiError(error);
  const places = problem.errors.filter((place) => !problem.message.includes(place.reason));
  return (
    <div className="errbox" role="alert" data-code={problem.code}>
      <div className="row">
        <Icon name="x" small /><span>{problem.code}</span><span className="grow" />
        {problem.requestId && <span className="mono">{problem.requestId} <CopyButton text={problem.requestId} /></span>}
      </div>
      <p><Marked text={problem.code === "network" ? words.network : problem.message} /></p>
      {places.length > 0 && (
        <ul>{places.slice(0, 20).map((place, n) => <li key={n}><code>{place.path}</code> <Marked text={place.reason} />{place.hint ? ` ${words.hint(place.hint)}` : ""}</li>)}</ul>
      )}
      {problem.retryAfter !== undefined && <p className="small dim">{words.retryIn(problem.retryAfter)}</p>}
      {onRetry && <div><button type="button" className="btn sm" onClick={onRetry}>{words.retry}</button></div>}
    </div>
  );
}

function Crashed({ error, onRetry }: { error: Error; onRetry: () => void }) {
  const words = useWords(commonWords).error;
  const isChunk = /dynamically imported module|Importing a module|Failed to fetch/i.test(error.message);
  return (
    <div className="stack" style={{ padding: "var(--s4)" }}>
      <p className="dim">{isChunk ? words.chunk : words.page}</p>
      {isChunk
        ? <div><button type="button" className="btn" onClick={() => location.reload()}>{words.reload}</button></div>
        : <ErrorPanel error={error} onRetry={onRetry} />}
    </div>
  );
}

/** Keeps the failure of one panel inside of it. */
export class Boundary extends Component<{ children: ReactNode }, { error: Error | undefined }> {
  override state = { error: undefined as Error | undefined };

  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render() {
    const { error } = this.state;
    return error ? <Crashed error={error} onRetry={() => this.setState({ error: undefined })} /> : this.props.children;
  }
}
