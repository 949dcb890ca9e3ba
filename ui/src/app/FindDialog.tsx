import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useState } from "react";
import { request } from "../api/client";
import type { SearchHit } from "../api/console";
import { shortId } from "../format/number";
import { Dialog } from "../parts/Dialog";
import { ErrorPanel } from "../parts/Errors";
import { Icon } from "../parts/Icon";
import { StatusWord } from "../parts/Status";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { NAV_PAGES } from "./pages";

/** The server refuses to search for less. */
const CHARS_MIN = 2;

interface Target { key: string; kind: string; title: string; detail?: string; status?: string; to: string; params?: Record<string, string> }

const ROUTES: Record<string, (id: string) => Pick<Target, "to" | "params">> = {
  run: (id) => ({ to: "/runs/$run", params: { run: id } }),
  flow: (id) => ({ to: "/flows/$flow", params: { flow: id } }),
  queue: (id) => ({ to: "/queues/$queue", params: { queue: id } }),
  job: (id) => ({ to: "/jobs/$job", params: { job: id } }),
};

function useTargets(text: string): { targets: Target[]; error: unknown; again: () => void } {
  const words = useWords(commonWords);
  const query = useQuery({
    queryKey: ["search", text],
    queryFn: ({ signal }) => request<{ items: SearchHit[] }>("GET", "/api/v1/search", { query: { q: text, limit: 10 }, signal }),
    enabled: text.trim().length >= CHARS_MIN,
    placeholderData: keepPreviousData,
  });
  const needle = text.trim().toLowerCase();
  const pages = NAV_PAGES.map((page) => ({ key: page.path, kind: words.find.pages, title: words.nav[page.id], to: page.path }))
    .filter((page) => page.title.toLowerCase().includes(needle) || page.to.includes(needle));
  const kinds: Record<string, string> = { run: words.find.run, flow: words.find.flow, queue: words.find.queue, job: words.find.job };
  const hits = (needle.length >= CHARS_MIN ? (query.data?.items ?? []) : []).flatMap((hit) => {
    const route = ROUTES[hit.kind];
    const detail = hit.id === hit.title ? undefined : shortId(hit.id);
    return route ? [{ key: `${hit.kind} ${hit.id}`, kind: kinds[hit.kind] ?? hit.kind, title: hit.title, detail, status: hit.status, ...route(hit.id) }] : [];
  });
  return { targets: [...hits, ...pages], error: needle.length >= CHARS_MIN ? query.error : undefined, again: () => void query.refetch() };
}

/** Finds runs, flows, queues, jobs and pages. */
export function FindDialog({ onClose }: { onClose: () => void }) {
  const words = useWords(commonWords);
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const { targets, error, again } = useTargets(useDeferredValue(text));
  const open = (target: Target | undefined) => {
    if (!target) return;
    onClose();
    void navigate({ to: target.to, params: target.params as never });
  };
  return (
    <Dialog title={words.find.label} onClose={onClose} onSubmit={() => open(targets[at])} footer={<span className="small faint">{words.find.hint}</span>}>
      <label className="input"><Icon name="search" small />
        <input
          autoFocus aria-label={words.find.label} placeholder={words.find.placeholder} value={text} autoComplete="off" spellCheck={false}
          onChange={(event) => { setText(event.target.value); setAt(0); }}
          onKeyDown={(event) => {
            if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
            event.preventDefault();
            setAt((old) => (old + (event.key === "ArrowDown" ? 1 : -1) + targets.length) % Math.max(1, targets.length));
          }}
        />
      </label>
      {error ? <ErrorPanel error={error} onRetry={again} /> : null}
      <div role="listbox" aria-label={words.find.results} className="found">
        {targets.map((target, n) => (
          <button type="button" role="option" key={target.key} aria-selected={n === at} onClick={() => open(target)} onMouseMove={() => setAt(n)}>
            <span className="faint small kind">{target.kind}</span><span className="cut">{target.title}</span>
            {target.detail && <span className="mono faint">{target.detail}</span>}{target.status && <StatusWord status={target.status} />}
          </button>
        ))}
        {targets.length === 0 && <p className="faint">{words.find.none}</p>}
      </div>
    </Dialog>
  );
}
