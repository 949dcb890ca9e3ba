import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { requestText } from "../api/client";
import type { Payload } from "../api/console";
import { bytes } from "../format/number";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { CopyAs } from "./Copy";
import { ErrorPanel } from "./Errors";
import { JsonText } from "./Json";
import { pretty, SHOWN_MAX } from "./json";

interface PayloadProps {
  title: string;
  payload: Payload | null | undefined;
  /** The address of the whole value, where there is one. */
  whole?: string;
  note?: ReactNode;
}

/** A value of a view: whole if it is small, else its beginning with ways to the rest. A large value is never laid out
 * whole. */
export function PayloadView({ title, payload, whole, note }: PayloadProps) {
  const words = useWords(commonWords);
  const load = useMutation({ mutationFn: (address: string) => requestText(address) });
  const text = useMemo(() => (payload && payload.head === undefined ? pretty(payload.value).text : (payload?.head ?? "")), [payload]);
  if (!payload || payload.value === null) return <div className="sec">{title}<span className="faint">{note ?? words.payload.none}</span></div>;
  const shown = (load.data ?? text).slice(0, SHOWN_MAX);
  const isCut = load.data === undefined ? payload.head !== undefined : load.data.length > SHOWN_MAX;
  return (
    <div className="stack" style={{ gap: 4 }}>
      <div className="sec">{title}{note && <span className="faint">{note}</span>}
        <span className="push"><CopyAs text={load.data ?? text}>{words.action.copy}</CopyAs></span>
      </div>
      <JsonText text={shown} label={title} />
      {isCut && (
        <div className="row small faint wrap">
          <span>{words.payload.cut(bytes(shown.length), bytes(payload.bytes))}</span>
          {whole && load.data === undefined && <button type="button" className="link" disabled={load.isPending} onClick={() => load.mutate(whole)}>{words.payload.all(bytes(payload.bytes))}</button>}
          {whole && <a className="link" href={whole} download>{words.payload.download}</a>}
        </div>
      )}
      {load.isError && <ErrorPanel error={load.error} onRetry={() => whole && load.mutate(whole)} />}
    </div>
  );
}
