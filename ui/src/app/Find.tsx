import { useState } from "react";
import { useKeys } from "../keys/keys";
import { Icon } from "../parts/Icon";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { Later } from "./Later";

const load = () => import("./FindDialog").then((module) => module.FindDialog);

/** The button of the header that opens the search dialog. */
export function Find() {
  const words = useWords(commonWords);
  const [isOpen, setOpen] = useState(false);
  useKeys([{ keys: "mod+k", label: (of) => commonWords[of].keys.find, run: () => setOpen(true), inInputs: true }]);
  return (
    <>
      <button type="button" className="find" onClick={() => setOpen(true)}><Icon name="search" small />{words.find.label}<kbd>Ctrl K</kbd></button>
      {isOpen && <Later load={load} onClose={() => setOpen(false)} />}
    </>
  );
}
