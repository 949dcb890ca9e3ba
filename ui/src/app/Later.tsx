import { type ComponentType, useEffect, useState } from "react";
import { toast } from "../parts/Toasts";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";

interface Closable {
  onClose: () => void;
}

/** A dialog of the frame, whose script comes when it is opened. A script that does not come is said, and is asked for
 * again the next time: no page fails for it. */
export function Later({ load, onClose }: Closable & { load: () => Promise<ComponentType<Closable>> }) {
  const words = useWords(commonWords).error;
  const [loaded, setLoaded] = useState<{ Dialog: ComponentType<Closable> }>();
  useEffect(() => {
    let isOpen = true;
    const fail = () => {
      if (!isOpen) return;
      toast(words.chunk, "fail", "x");
      onClose();
    };
    load().then((Dialog) => isOpen && setLoaded({ Dialog }), fail);
    return () => { isOpen = false; };
  }, [load]);
  return loaded ? <loaded.Dialog onClose={onClose} /> : null;
}
