import { useEffect, useRef } from "react";
import { type KeyBinding, type KeyGroup, registry } from "./registry";

/** Whether keys belong to the element: text fields, and the code editor. */
function isInput(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
    !(target instanceof HTMLInputElement && ["checkbox", "radio", "range", "button"].includes(target.type));
}

/** Listens for keys; the frame calls it once. */
export function startKeys(): () => void {
  const press = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing) return;
    // An open dialog or menu has its own keys; buttons and links take Enter and the space bar themselves.
    if (document.querySelector("dialog[open], :popover-open")) return;
    const target = event.target;
    if ((event.key === "Enter" || event.key === " ") && target instanceof Element && target.closest("a, button, [role=button], summary")) return;
    if (registry.press(event, isInput(target), Date.now())) event.preventDefault();
  };
  document.addEventListener("keydown", press);
  return () => document.removeEventListener("keydown", press);
}

/** Registers keys while the component is mounted. */
export function useKeys(bindings: KeyBinding[], title?: KeyGroup["title"]): void {
  const latest = useRef(bindings);
  latest.current = bindings;
  const shape = bindings.map((binding) => binding.keys).join();
  useEffect(() => {
    // The keys stay the same; each press runs the newest function.
    const live = latest.current.map((binding) => ({ ...binding, run: () => latest.current.find((one) => one.keys === binding.keys)?.run() }));
    return registry.add({ title, bindings: live });
  }, [shape]);
}
