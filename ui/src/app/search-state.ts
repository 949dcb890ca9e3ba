import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import type { Search } from "./search";

/** All search parameters, and a function that changes some of them; `undefined` removes one. */
export function useSearchParams(): [Search, (change: Search, push?: boolean) => void] {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const change = useCallback((some: Search, push = false) => {
    void navigate({ to: ".", search: ((old: Search) => ({ ...old, ...some })) as never, replace: !push, resetScroll: false });
  }, [navigate]);
  return [search, change];
}

/** One search parameter as a state of the page. */
export function useSearchState(name: string, initial = ""): [string, (value: string | undefined) => void] {
  const [search, change] = useSearchParams();
  const set = useCallback((value: string | undefined) => change({ [name]: value === initial ? undefined : value }), [change, name, initial]);
  return [search[name] ?? initial, set];
}
