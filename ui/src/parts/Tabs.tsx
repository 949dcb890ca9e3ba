import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

export interface TabItem {
  id: string;
  label: ReactNode;
  count?: number | string;
}

/** Tabs that are links: the open tab is `?tab=` in the address; the first one has no parameter. */
export function Tabs({ items, current, label, param = "tab" }: { items: TabItem[]; current: string; label: string; param?: string }) {
  return (
    <nav className="tabs" aria-label={label}>
      {items.map(({ id, label: text, count }, n) => (
        <Link key={id} to="." search={(old: Record<string, unknown>) => ({ ...old, [param]: n === 0 ? undefined : id })} replace resetScroll={false} activeOptions={{ exact: true, includeSearch: true }} activeProps={{ "aria-current": id === current ? "page" : undefined }} aria-current={id === current ? "page" : undefined}>
          {text}{count !== undefined && <small>{count}</small>}
        </Link>
      ))}
    </nav>
  );
}

/** A segmented control: one of a few values. */
export function Segments<T extends string>({ items, value, onChange, label }: { items: { id: T; label: ReactNode; title?: string }[]; value: T; onChange: (id: T) => void; label: string }) {
  return (
    <div className="seg" role="group" aria-label={label}>
      {items.map((item) => (
        <button type="button" key={item.id} title={item.title} aria-pressed={item.id === value} onClick={() => onChange(item.id)}>{item.label}</button>
      ))}
    </div>
  );
}
