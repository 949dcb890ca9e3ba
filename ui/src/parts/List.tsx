// Lists with cursors: pages are read one after the other and shown as one list.
import { type InfiniteData, type QueryKey, useInfiniteQuery, type UseInfiniteQueryResult } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { Icon } from "./Icon";
import { holdRows } from "./held";

export interface Page<T> { items: T[]; next?: string | null }

/** All pages of a list that were read so far. */
export function useList<T>(key: QueryKey, read: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>): UseInfiniteQueryResult<T[]> {
  return useInfiniteQuery<Page<T>, Error, T[], QueryKey, string | undefined>({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    select: (data: InfiniteData<Page<T>>) => data.pages.flatMap((page) => page.items),
    placeholderData: (old) => old,
  });
}

/** The line below a list: how many rows there are, and a button that reads more. */
export function ListFoot({ list, shown }: { list: Pick<UseInfiniteQueryResult, "hasNextPage" | "isFetchingNextPage" | "fetchNextPage">; shown: number }) {
  const words = useWords(commonWords);
  return (
    <div className="foot">
      <span>{words.list.shown(shown)}</span>
      {list.hasNextPage && (
        <button type="button" className="btn sm" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>{words.action.loadMore}</button>
      )}
    </div>
  );
}

/** Keeps the rows of a list in their places; `pill` offers the new ones. `reset` starts over when it changes. */
export function useHeldRows<T>(next: T[] | undefined, keyOf: (row: T) => string, reset = "") {
  const shown = useRef<{ reset: string; keys: string[] } | undefined>(undefined);
  const [, turn] = useState(0);
  const before = shown.current?.reset === reset ? shown.current.keys : undefined;
  const { rows, waiting } = holdRows(before, next ?? [], keyOf);
  useEffect(() => {
    if (next) shown.current = { reset, keys: rows.map(keyOf) };
  });
  const show = () => {
    shown.current = undefined;
    turn((n) => n + 1);
  };
  return { rows, waiting, show };
}

/** The pill above a list whose new rows wait. It takes no room, so that nothing moves when it appears. */
export function NewRows({ waiting, onShow }: { waiting: number; onShow: () => void }) {
  const words = useWords(commonWords).list;
  if (waiting === 0) return null;
  return <button type="button" className="btn sm new-rows" onClick={onShow}><Icon name="up" small />{words.newRows(waiting)}</button>;
}
