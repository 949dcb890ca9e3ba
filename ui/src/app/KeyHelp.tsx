import { lazy, Suspense, useState } from "react";
import { useKeys } from "../keys/keys";
import { commonWords } from "../words/common";

const KeyDialog = lazy(() => import("./KeyDialog").then((module) => ({ default: module.KeyDialog })));

/** Opens the help on keys. */
export function KeyHelp() {
  const [isOpen, setOpen] = useState(false);
  useKeys([{ keys: "?", label: (of) => commonWords[of].keys.help, run: () => setOpen(true) }]);
  return isOpen ? <Suspense><KeyDialog onClose={() => setOpen(false)} /></Suspense> : null;
}
