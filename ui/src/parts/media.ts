import { useSyncExternalStore } from "react";

const phone = typeof matchMedia === "undefined" ? undefined : matchMedia("(max-width: 640px)");

function subscribe(listener: () => void) {
  phone?.addEventListener("change", listener);
  return () => phone?.removeEventListener("change", listener);
}

/** Whether the window has phone width, as in the stylesheets. */
export function useIsPhone(): boolean {
  return useSyncExternalStore(subscribe, () => phone?.matches ?? false);
}
