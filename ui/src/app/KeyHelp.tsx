import { useState } from "react";
import { useKeys } from "../keys/keys";
import { commonWords } from "../words/common";
import { Later } from "./Later";

const load = () => import("./KeyDialog").then((module) => module.KeyDialog);

/** Opens the help on keys. */
export function KeyHelp() {
  const [isOpen, setOpen] = useState(false);
  useKeys([{ keys: "?", label: (of) => commonWords[of].keys.help, run: () => setOpen(true) }]);
  return isOpen ? <Later load={load} onClose={() => setOpen(false)} /> : null;
}
