import { type ReactNode, useEffect, useState } from "react";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { Icon } from "./Icon";

/** Copies a text. The clipboard API is missing on plain http with another host than localhost: then a selected text
 * area and the old command do it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    // Inside an open dialog, because everything outside of it is inert.
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

function useCopied(): [boolean, (text: string) => void] {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  return [copied, (text) => void copyText(text).then(setCopied)];
}

/** The small copy button after an id. */
export function CopyButton({ text, label }: { text: string; label?: string }) {
  const words = useWords(commonWords).action;
  const [copied, copy] = useCopied();
  return (
    <button type="button" className="copy" aria-label={copied ? words.copied : (label ?? words.copyId)} title={copied ? words.copied : (label ?? words.copyId)} onClick={() => copy(text)}>
      <Icon name={copied ? "check" : "copy"} small />
    </button>
  );
}

/** A copy button with a word. */
export function CopyAs({ text, children, icon = true }: { text: string; children: ReactNode; icon?: boolean }) {
  const words = useWords(commonWords).action;
  const [copied, copy] = useCopied();
  return (
    <button type="button" className="btn sm quiet" onClick={() => copy(text)}>
      {icon && <Icon name={copied ? "check" : "copy"} small />}{copied ? words.copied : children}
    </button>
  );
}
