import { type ReactNode, useSyncExternalStore } from "react";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { Icon, type IconName } from "./Icon";
import type { Family } from "./status";

interface ToastItem {
  id: number;
  text: ReactNode;
  family: Family;
  icon: IconName;
}

const TOAST_MS = 6_000;
let toasts: ToastItem[] = [];
let latest = 0;
const listeners = new Set<() => void>();

function change(next: ToastItem[]) {
  toasts = next;
  for (const listener of listeners) listener();
}

const dismiss = (id: number) => change(toasts.filter((toast) => toast.id !== id));

/** Shows a short message in the corner. Errors do not come here: they stay where they happened. */
export function toast(text: ReactNode, family: Family = "ok", icon: IconName = "check"): void {
  latest += 1;
  const id = latest;
  change([...toasts.slice(-3), { id, text, family, icon }]);
  setTimeout(() => dismiss(id), TOAST_MS);
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Toasts() {
  const words = useWords(commonWords).action;
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, family, icon }) => (
        <div key={id} className={`toast ${family}`}>
          <span className="fg"><Icon name={icon} /></span><span className="grow">{text}</span>
          <button type="button" className="btn sm icon quiet" aria-label={words.dismiss} onClick={() => dismiss(id)}><Icon name="x" small /></button>
        </div>
      ))}
    </div>
  );
}
