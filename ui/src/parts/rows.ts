// The keyboard cursor of a table: j and k move, Enter opens, x selects.
import { useEffect, useState } from "react";
import { commonWords } from "../words/common";
import { useKeys } from "../keys/keys";

interface RowKeys {
  count: number;
  open: (index: number) => void;
  mark?: (index: number, range: boolean) => void;
}

/** The index of the row under the cursor, -1 before the first move. */
export function useRowCursor({ count, open, mark }: RowKeys): [number, (index: number) => void] {
  const [at, setAt] = useState(-1);
  useEffect(() => setAt((old) => Math.min(old, count - 1)), [count]);
  const move = (by: number) => {
    const next = Math.max(0, Math.min(count - 1, at + by));
    setAt(next);
    document.querySelector(`[data-row="${next}"]`)?.scrollIntoView({ block: "nearest" });
  };
  useKeys([
    { keys: "j", label: (of) => commonWords[of].keys.down, run: () => move(1) },
    { keys: "k", label: (of) => commonWords[of].keys.up, run: () => move(-1) },
    { keys: "Enter", label: (of) => commonWords[of].keys.openRow, run: () => at >= 0 && open(at) },
    ...(mark ? [{ keys: "x", label: (of: "en" | "zh") => commonWords[of].keys.mark, run: () => at >= 0 && mark(at, false) }] : []),
  ]);
  return [at, setAt];
}
