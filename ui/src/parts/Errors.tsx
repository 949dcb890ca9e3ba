import { Component, type ReactNode, useState } from "react";
import { asApiError, request } from "../api/client";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { CopyButton } from "./Copy";
import { Icon } from "./Icon";
import { Marked } from "./Marked";

/** The script of a page or a dialog did not come. */
export class NotLoadedError extends Error {
  override readonly name = "NotLoadedError";
}

/** An error of the API: its code, its text, the places that are wrong, the request id and a retry. */
export function ErrorPanel({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const words = useWords(commonWords).error;
  const problem = asApiError(error);
  const places = problem.errors.filter((place) => !problem.message.includes(place.reason));
  return (
    <div className="errbox" role="alert" data-code={problem.code}>
      <div className="row wrap">
        <Icon name="x" small /><span>{problem.code}</span><span className="grow" />
        {problem.requestId && <span className="mono text" title={words.request}>{problem.requestId} <CopyButton text={problem.requestId} /></span>}
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

/** A part of the console that could not be loaded: the server does not answer, or has a newer console. */
function NotLoaded() {
  const words = useWords(commonWords).error;
  const [error, setError] = useState<unknown>();
  // A page that is loaded again without a server is the browser's own error page: the server is asked first.
  const reload = () => {
    setError(undefined);
    request("GET", "/api/v1/about").then(() => location.reload(), (refused: unknown) => (asApiError(refused).code === "network" ? setError(refused) : location.reload()));
  };
  if (error) return <ErrorPanel error={error} onRetry={reload} />;
  return <div className="errbox" role="alert" data-code="not_loaded"><p>{words.chunk}</p><div><button type="button" className="btn sm" onClick={reload}>{words.reload}</button></div></div>;
}

function Crashed({ error, onRetry }: { error: Error; onRetry: () => void }) {
  const words = useWords(commonWords).error;
  const isChunk = error instanceof NotLoadedError || /dynamically imported module|Importing a module|Failed to fetch/i.test(error.message);
  return (
    <div className="stack" style={{ padding: "var(--s4)" }}>
      {isChunk ? <NotLoaded /> : <><p className="dim">{words.page}</p><ErrorPanel error={error} onRetry={onRetry} /></>}
    </div>
  );
}

interface BoundaryProps {
  children: ReactNode;
  /** Is called when the viewer asks for another try: the answer that broke the panel is read again. */
  onRetry?: () => void;
  /** Another value shows the children again. */
  of?: unknown;
  /** The frame of the message, where the children bring their own. */
  frame?: (message: ReactNode) => ReactNode;
}

/** Keeps the failure of one panel inside of it. */
export class Boundary extends Component<BoundaryProps, { error: Error | undefined }> {
  override state = { error: undefined as Error | undefined };

  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override componentDidUpdate(before: BoundaryProps) {
    if (this.state.error && before.of !== this.props.of) this.setState({ error: undefined });
  }

  override render() {
    const { error } = this.state;
    const retry = () => {
      this.props.onRetry?.();
      this.setState({ error: undefined });
    };
    if (!error) return this.props.children;
    const message = <Crashed error={error} onRetry={retry} />;
    return this.props.frame?.(message) ?? message;
  }
}
