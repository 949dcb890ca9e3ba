// The page of one run: the view of the server, kept up to date by patches of the event stream.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { ApiError, request } from "../../api/client";
import type { RunPatch, RunView } from "../../api/console";
import { PageFrame } from "../../app/PageFrame";
import { useSearchParams } from "../../app/search-state";
import { count, tail } from "../../format/number";
import { useKeys } from "../../keys/keys";
import { useTopic } from "../../live/live";
import { applyPatch } from "../../live/patch";
import { Boundary } from "../../parts/Errors";
import { Panel } from "../../parts/Panel";
import { isEnded } from "../../parts/status";
import { Tabs } from "../../parts/Tabs";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";
import { ChildrenTab } from "./ChildrenTab";
import { CostTab } from "./CostTab";
import { DefinitionTab } from "./DefinitionTab";
import { type ActionName, RunDialogs } from "./dialogs";
import { EventsTab } from "./EventsTab";
import { GraphTab } from "./GraphTab";
import { JsonTab } from "./JsonTab";
import { Dock, RunHead } from "./RunHead";
import { StateTab } from "./StateTab";
import "./run.css";

/** Asks for the view again at most once in this time, however many events ask for it. */
const REFETCH_MS = 300;

/** The view of a run, live. */
function useRunView(id: string) {
  const client = useQueryClient();
  const key = ["run", id];
  const query = useQuery({ queryKey: key, queryFn: ({ signal }) => request<RunView>("GET", `/api/v1/runs/${encodeURIComponent(id)}/view`, { signal }), retry: (n, error) => !(error instanceof ApiError && error.status === 404) && n < 2 });
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const refetch = () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void client.invalidateQueries({ queryKey: key });
    }, REFETCH_MS);
  };
  // The address may have a prefix of the id; the stream knows whole ids.
  const whole = query.data?.run.id;
  useTopic(whole && `run:${whole}`, ({ type, data }) => {
    const view = client.getQueryData<RunView>(key);
    if (type !== "patch" || !view) return refetch();
    const next = applyPatch(view, data as RunPatch);
    if (next === "refetch") refetch();
    else client.setQueryData(key, next);
  });
  return query;
}

export function RunPage() {
  const { run: id } = useParams({ strict: false }) as { run: string };
  const words = useWords(runWords);
  const nav = useWords(commonWords).nav;
  const query = useRunView(id);
  const run = query.data?.run;
  return (
    <PageFrame title={run ? run.flow.slice(0, 120) : words.title} suffix={<span className="mono">{tail(run?.id ?? id)}</span>} parent={{ to: "/runs", label: nav.runs }} flush>
      {query.data ? <Panel query={query}>{(view) => <Detail view={view} />}</Panel> : <div style={{ padding: "var(--s5)" }}><Panel query={query} lines={8}>{() => null}</Panel></div>}
    </PageFrame>
  );
}

function Detail({ view }: { view: RunView }) {
  const words = useWords(runWords);
  const [search, change] = useSearchParams();
  const [action, setAction] = useState<ActionName | undefined>();
  const navigate = useNavigate();
  const tab = search.tab ?? "graph";
  useKeys([
    { keys: "r", label: (of) => runWords[of].keys.rerun, run: () => isEnded(view.run.status) && setAction({ name: "rerun", node: search.node }) },
    { keys: "c", label: (of) => runWords[of].keys.cancel, run: () => isEnded(view.run.status) || setAction({ name: "cancel" }) },
    { keys: "Escape", label: (of) => runWords[of].keys.back, run: () => (search.node ? change({ node: undefined }) : void navigate({ to: "/runs" })) },
  ], (of) => runWords[of].keys.title);
  const items = [
    { id: "graph", label: words.tabs.graph }, { id: "state", label: words.tabs.state }, { id: "events", label: words.tabs.events, count: count(view.run.len) },
    ...(view.children.length > 0 ? [{ id: "children", label: words.tabs.children, count: `${view.children.length}${view.more_children ? "+" : ""}` }] : []),
    { id: "definition", label: words.tabs.definition }, { id: "cost", label: words.tabs.cost }, { id: "json", label: words.tabs.json },
  ];
  return (
    <>
      <RunHead view={view} onAction={setAction} />
      <div className="runtabs"><Tabs items={items} current={tab} label={words.tabs.label} /></div>
      <Boundary key={tab}>
        {tab === "state" ? <StateTab view={view} /> : tab === "events" ? <EventsTab view={view} /> : tab === "children" ? <ChildrenTab view={view} />
          : tab === "definition" ? <DefinitionTab view={view} /> : tab === "cost" ? <CostTab view={view} /> : tab === "json" ? <JsonTab view={view} />
            : <GraphTab view={view} onAction={setAction} />}
      </Boundary>
      <Dock view={view} onAction={setAction} />
      {action && <RunDialogs view={view} action={action} onClose={() => setAction(undefined)} />}
    </>
  );
}
