import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { call } from "../../api/client";
import type { FlowGraph } from "../../api/console";
import type { FlowDetail } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useSearchParams } from "../../app/search-state";
import { FlowGraphView } from "../../graph/FlowGraphView";
import { overlayOf } from "../../graph/overlay";
import { useKeys } from "../../keys/keys";
import { Boundary, ErrorPanel } from "../../parts/Errors";
import { Icon } from "../../parts/Icon";
import { Panel, Skeleton } from "../../parts/Panel";
import { Segments } from "../../parts/Tabs";
import { commonWords } from "../../words/common";
import { flowsWords } from "../../words/flows";
import { useWords } from "../../words/language";
import type { CodeHandle } from "./CodeEditor";
import { isJson, loadDraft, NEW_TEXT, readable, saveDraft } from "./draft";
import { DiscardDialog, PublishDialog, TestDialog } from "./EditorDialogs";
import { parsePath, type Segment } from "./positions";
import { badNodes, type EditorProblem, nodeAt, pathOf } from "./problems";
import { TestRun, useTestRun } from "./TestRun";
import { useValidation } from "./validation";
import "../flows/flows.css";
import "./editor.css";

const CodeEditor = lazy(() => import("./CodeEditor").then(({ CodeEditor: component }) => ({ default: component })));
const TextDiff = lazy(() => import("../flows/TextDiff").then(({ TextDiff: component }) => ({ default: component })));

/** A draft is written to the browser's storage this long after the last key. */
const SAVE_MS = 400;
/** The key of the draft of a flow that has no name yet. */
const NEW = " new";

export function EditorPage() {
  const words = useWords(flowsWords);
  const [search] = useSearchParams();
  const name = search.flow;
  const version = Number(search.version) || undefined;
  const base = useQuery({
    queryKey: ["editor", name, version], enabled: name !== undefined, staleTime: Number.POSITIVE_INFINITY, gcTime: 0,
    queryFn: async ({ signal }): Promise<FlowDetail> => {
      const flow = await call("GET /api/v1/flows/{flow}", { path: { flow: name ?? "" }, signal });
      if (!version || version === flow.latest_version) return flow;
      return { ...flow, version: await call("GET /api/v1/flows/{flow}/versions/{version}", { path: { flow: name ?? "", version }, signal }) };
    },
  });
  const title = name ?? words.editor.newTitle;
  if (!name) return <Editor key="new" title={title} published={NEW_TEXT.yaml} base={0} latest={0} />;
  if (!base.data) return <PageFrame title={title} parent={{ to: "/flows", label: words.title }}><Panel query={base}>{() => null}</Panel></PageFrame>;
  const { version: shown, latest_version } = base.data;
  const text = readable(shown?.text || JSON.stringify(shown?.definition ?? {}));
  return <Editor key={`${name} ${version ?? ""}`} title={title} flow={base.data.name} published={text} base={shown?.version ?? latest_version} latest={latest_version} />;
}

interface EditorProps {
  title: string;
  /** The name of the flow; absent for a new one. */
  flow?: string;
  published: string;
  base: number;
  latest: number;
}

/** The text, and its copy in the browser's storage. */
function useDraft(flow: string | undefined, published: string, base: number) {
  const key = flow ?? NEW;
  const [kept] = useState(() => loadDraft(key));
  const [text, setText] = useState(kept?.text ?? published);
  const [start, setStart] = useState(kept ? kept.base : base);
  const isChanged = text !== published;
  useEffect(() => {
    const timer = setTimeout(() => saveDraft(key, isChanged ? { text, base: start, at: Date.now() } : undefined), SAVE_MS);
    return () => clearTimeout(timer);
  }, [key, text, start, isChanged]);
  const reset = (next: string, version: number) => { setText(next); setStart(version); saveDraft(key, undefined); };
  return { text, setText, start, isChanged, wasKept: kept !== undefined && kept.text !== published, reset };
}

type Pane = "text" | "graph";

function Editor({ title, flow, published, base, latest }: EditorProps) {
  const words = useWords(flowsWords);
  const own = words.editor;
  const [search, change] = useSearchParams();
  const navigate = useNavigate();
  const client = useQueryClient();
  const draft = useDraft(flow, published, base);
  const [dialog, setDialog] = useState<"publish" | "test" | "discard">();
  const [pane, setPane] = useState<Pane>("text");
  const [isComparing, setComparing] = useState(false);
  const code = useRef<CodeHandle>(null);
  const checked = useValidation(draft.text);
  const vocabulary = useVocabulary(checked.graph);
  const test = useTestRun();
  const errors = checked.problems.filter(({ severity }) => severity === "error");
  const warnings = checked.problems.length - errors.length;
  const language = isJson(draft.text) ? "json" : "yaml";
  useKeys([
    { keys: "mod+s", label: (of) => flowsWords[of].editor.keyPublish, run: () => checked.isOk && setDialog("publish"), inInputs: true },
    { keys: "mod+Enter", label: (of) => flowsWords[of].editor.keyTest, run: () => checked.isOk && setDialog("test"), inInputs: true },
    { keys: "mod+enter", label: (of) => flowsWords[of].editor.keyTest, run: () => checked.isOk && setDialog("test"), inInputs: true },
  ], (of) => flowsWords[of].editor.keys);
  const select = (id: string | undefined, isFromGraph: boolean) => {
    if (id !== search.node) change({ node: id });
    const path = isFromGraph ? checked.graph?.nodes.find((node) => node.id === id)?.path : undefined;
    const segments = path ? parsePath(path) : undefined;
    if (segments) code.current?.show({ path: segments });
  };
  // An address that names a node shows its text, once the text and the graph are there.
  const wanted = useRef(search.node);
  const jump = () => {
    const path = wanted.current && code.current ? checked.graph?.nodes.find(({ id }) => id === wanted.current)?.path : undefined;
    const segments = path ? parsePath(path) : undefined;
    if (!segments) return;
    wanted.current = undefined;
    code.current?.show({ path: segments }, true);
  };
  useEffect(jump, [checked.graph]);
  const follow = (path: Segment[]) => {
    const id = checked.graph ? nodeAt(checked.graph, path) : undefined;
    if (id) select(id, false);
  };
  const close = () => setDialog(undefined);
  const publishedNow = (name: string, version: number) => {
    saveDraft(flow ?? NEW, undefined);
    void client.invalidateQueries({ queryKey: ["flows"] });
    // A key of its own: the page of the version that was just published must not open the draft again.
    void navigate({ to: "/flows/$flow", params: { flow: name }, search: (version > 1 ? { tab: "versions", from: String(version - 1), to: String(version) } : {}) as never });
  };
  return (
    <PageFrame
      title={title} suffix={own.title} parent={{ to: "/flows", label: words.title }} flush
      actions={<>
        <button type="button" className="btn wide" disabled={!checked.isOk} onClick={() => setDialog("test")}><Icon name="play" small />{own.test}</button>
        <button type="button" className="btn primary" disabled={!checked.isOk || (!draft.isChanged && flow !== undefined)} onClick={() => setDialog("publish")}>{own.publish}</button>
      </>}
    >
      <h1 className="hidden-text">{title}</h1>
      <div className="editor-bar">
        <State checked={checked} errors={errors.length} warnings={warnings} />
        {draft.isChanged && <span className="small dim wide">{draft.wasKept ? own.draftRestored : own.draftKept}</span>}
        {draft.isChanged && <button type="button" className="btn sm quiet" onClick={() => setDialog("discard")}>{own.discard}</button>}
        {draft.isChanged && flow && <button type="button" className="btn sm quiet" aria-pressed={isComparing} onClick={() => setComparing(!isComparing)}>{own.compare}</button>}
        {!flow && !draft.isChanged && <Segments label={own.text} value={language} onChange={(next) => draft.setText(NEW_TEXT[next])} items={[{ id: "yaml", label: own.asYaml }, { id: "json", label: own.asJson }]} />}
        <span className="grow" />
        <span className="narrow"><Segments<Pane> label={own.panes} value={pane} onChange={setPane} items={[{ id: "text", label: own.text }, { id: "graph", label: own.graph }]} /></span>
      </div>
      <div className={`editor-panes show-${pane}`}>
        <div className="pane-text">
          <Boundary><Suspense fallback={<Skeleton lines={12} />}>
            {isComparing
              ? <TextDiff before={published} after={draft.text} label={own.compare} />
              : <CodeEditor ref={code} onReady={jump} text={draft.text} language={language} problems={checked.problems} vocabulary={vocabulary} label={own.text} onChange={draft.setText} onPath={follow} />}
          </Suspense></Boundary>
        </div>
        <div className="pane-graph">
          <Boundary>
            {checked.graph
              ? <FlowGraphView graph={checked.graph} name={title} tones={badNodes(checked.graph, checked.problems)} overlays={test.run ? overlayOf(checked.graph, test.run.node_states) : undefined} selected={search.node} onSelect={(id) => select(id, true)} maxHeight="58vh" />
              : <p className="dim pad">{own.noGraph}</p>}
            {checked.graph && errors.length > 0 && <p className="small faint pad">{own.oldGraph}</p>}
          </Boundary>
          {checked.error ? <div className="pad"><ErrorPanel error={checked.error} onRetry={checked.retry} /></div> : null}
          <TestRun test={test} />
          <Problems problems={checked.problems} graph={checked.graph} onShow={(problem) => { setPane("text"); setComparing(false); showProblem(code.current, problem); }} />
        </div>
      </div>
      {dialog === "publish" && <PublishDialog flow={flow} text={draft.text} base={draft.start} latest={latest} warnings={warnings} onDone={publishedNow} onClose={close} />}
      {dialog === "test" && <TestDialog flow={flow} text={draft.text} onStarted={test.watch} onClose={close} />}
      {dialog === "discard" && <DiscardDialog onDiscard={() => { draft.reset(published, base); setComparing(false); }} onClose={close} />}
    </PageFrame>
  );
}

function showProblem(code: CodeHandle | null, problem: EditorProblem) {
  const path = pathOf(problem);
  if (path && path.length > 0) code?.show({ path });
  else code?.show({ line: problem.line ?? 1, column: problem.column ?? 1 });
}

/** The offers of the completion: live services, flows, and the nodes of the last good text. */
function useVocabulary(graph: FlowGraph | undefined) {
  const services = useQuery({ queryKey: ["services", "names"], staleTime: 30_000, queryFn: ({ signal }) => call("GET /api/v1/services", { query: { limit: 1000 }, signal }) });
  const flows = useQuery({ queryKey: ["flows", "names"], staleTime: 60_000, queryFn: ({ signal }) => call("GET /api/v1/flows", { query: { limit: 200 }, signal }) });
  return useMemo(() => ({
    services: (services.data?.items ?? []).map(({ name }) => name), flows: (flows.data?.items ?? []).map(({ name }) => name),
    nodes: [...new Set((graph?.nodes ?? []).filter(({ kind, id }) => kind !== "end" && !id.includes("*")).map(({ key }) => key))],
  }), [services.data, flows.data, graph]);
}

function State({ checked, errors, warnings }: { checked: ReturnType<typeof useValidation>; errors: number; warnings: number }) {
  const own = useWords(flowsWords).editor;
  const [family, icon, text] = errors > 0 ? (["fail", "x", own.problems(errors)] as const) : warnings > 0 ? (["retry", "warn", own.warnings(warnings)] as const) : checked.isKnown ? (["ok", "check", own.ok] as const) : (["idle", "pending", own.checking] as const);
  return <span className={`pill ${family}`} role="status" data-problems={checked.isKnown ? errors : undefined}><Icon name={icon} /><span>{text}</span></span>;
}

const PROBLEMS_SHOWN = 200;

function Problems({ problems, graph, onShow }: { problems: EditorProblem[]; graph: FlowGraph | undefined; onShow: (problem: EditorProblem) => void }) {
  const words = useWords(flowsWords).editor;
  const common = useWords(commonWords);
  if (problems.length === 0) return null;
  return (
    <ul className="problems" aria-label={words.problems(problems.length)}>
      {problems.slice(0, PROBLEMS_SHOWN).map((problem, n) => {
        const path = pathOf(problem);
        const node = graph && path && nodeAt(graph, path);
        return (
          <li key={n} data-severity={problem.severity}>
            <button type="button" onClick={() => onShow(problem)}>
              <span className={problem.severity === "error" ? "fail fg" : "retry fg"}><Icon name={problem.severity === "error" ? "x" : "warn"} small /></span>
              <span className="text"><code>{problem.path}</code> {problem.reason}{problem.hint && <span className="dim"> {common.error.hint(problem.hint)}</span>}
                <span className="small faint"> {problem.line ? words.line(problem.line) : ""} {node ? words.atNode(node) : ""} {problem.code ?? ""}</span></span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
