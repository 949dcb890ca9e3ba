// The form that starts a run: fields for the declared variables of the flow, or JSON.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { call } from "../../api/client";
import type { RunPriority, RunRequest, StartMode } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useSearchParams } from "../../app/search-state";
import { tail } from "../../format/number";
import { cli, curl } from "../../format/shell";
import { CopyAs } from "../../parts/Copy";
import { ErrorPanel } from "../../parts/Errors";
import { JsonField } from "../../parts/JsonField";
import { readJson } from "../../parts/json-input";
import { Segments } from "../../parts/Tabs";
import { toast } from "../../parts/Toasts";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { startWords } from "../../words/start";
import { labelsOf, paramsRead, type VariableField, valueOf, variablesOf } from "./fields";
import "./start.css";

interface StartForm {
  version: string; json: string; fields: Record<string, string>; isJson: boolean; account: string; priority: string; request: string; labels: string; budget: string; manual: boolean; short: string; mode: string; nodes: string;
}

const EMPTY: StartForm = { version: "", json: "{}", fields: {}, isJson: false, account: "", priority: "", request: "", labels: "", budget: "", manual: false, short: "fail", mode: "all", nodes: "" };

function useFlow(flow: string, version: string) {
  const detail = useQuery({ queryKey: ["flow", flow], enabled: flow !== "", retry: false, queryFn: ({ signal }) => call("GET /api/v1/flows/{flow}", { path: { flow }, signal }) });
  const chosen = useQuery({
    queryKey: ["version", flow, Number(version)], enabled: flow !== "" && version !== "",
    queryFn: ({ signal }) => call("GET /api/v1/flows/{flow}/versions/{version}", { path: { flow, version: Number(version) }, signal }),
  });
  return { detail, chosen, definition: version ? chosen.data : (detail.data?.version ?? undefined) };
}

/** The values of a run that is to be started again. */
function useLike(id: string | undefined, fill: (form: Partial<StartForm>) => void) {
  const like = useQuery({ queryKey: ["run-whole", id], enabled: id !== undefined, queryFn: ({ signal }) => call("GET /api/v1/runs/{id}", { path: { id: id ?? "" }, signal }) });
  const run = like.data;
  useEffect(() => {
    if (!run) return;
    fill({
      version: String(run.version), json: JSON.stringify(run.params, null, 2), isJson: true, account: run.account ?? "", priority: run.priority, manual: run.manual,
      labels: Object.entries(run.labels ?? {}).map(([key, value]) => `${key}=${value}`).join(" "), budget: run.budget == null ? "" : String(run.budget), mode: run.exec_mode, nodes: (run.start_node_ids ?? []).join(" "),
    });
  }, [run]);
  return like;
}

/** The body of the request, or the fields that are wrong. */
function bodyOf(form: StartForm, variables: VariableField[] | undefined): { body?: RunRequest; bad: Set<string> } {
  const bad = new Set<string>();
  let params: Record<string, unknown> = {};
  if (variables && !form.isJson) {
    for (const field of variables) {
      const { value, isBad } = valueOf(field, form.fields[field.name] ?? "");
      if (isBad || (value === undefined && field.isRequired && field.byDefault === undefined)) bad.add(`field ${field.name}`);
      if (value !== undefined) params[field.name] = value;
    }
  } else {
    const { value, error } = readJson(form.json, "object");
    if (error) bad.add("json");
    else params = (value ?? {}) as Record<string, unknown>;
  }
  const labels = labelsOf(form.labels);
  if (!labels) bad.add("labels");
  if (form.budget && !/^\d+$/.test(form.budget)) bad.add("budget");
  const body: RunRequest = {
    params, ...(form.version && { version: Number(form.version) }), ...(form.account && { account: form.account }), ...(form.priority && { priority: form.priority as RunPriority }),
    ...(form.request && { request_id: form.request }), ...(labels && Object.keys(labels).length > 0 && { labels }), ...(form.budget && { budget: Number(form.budget) }),
    ...(form.manual && { manual: true }), ...(form.short === "wait" && { on_short_balance: "wait" as const }),
    ...(form.mode !== "all" && { exec_mode: form.mode as StartMode, start_node_ids: form.nodes.split(/\s+/).filter(Boolean) }),
  };
  return bad.size > 0 ? { bad } : { body, bad };
}

export function StartPage() {
  const words = useWords(startWords);
  const nav = useWords(commonWords).nav;
  const common = useWords(commonWords).action;
  const [search, change] = useSearchParams();
  const flow = search.flow ?? "";
  // A link may bring the parameters.
  const [form, setForm] = useState<StartForm>(() => (search.params ? { ...EMPTY, json: search.params, isJson: true } : EMPTY));
  const set = (some: Partial<StartForm>) => setForm((old) => ({ ...old, ...some }));
  const like = useLike(search.like, set);
  const { detail, chosen, definition } = useFlow(flow, form.version);
  const variables = variablesOf(definition?.definition);
  const { body, bad } = bodyOf(form, variables);
  const navigate = useNavigate();
  const [isTried, setTried] = useState(false);
  const start = useMutation({
    mutationFn: (request: RunRequest) => call("POST /api/v1/flows/{flow}/runs", { path: { flow }, body: request }),
    onSuccess: ({ id, created }) => {
      if (!created) toast(words.again, "idle", "unknown");
      void navigate({ to: "/runs/$run", params: { run: id } as never });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (body && flow) start.mutate(body);
  };
  const shows = (name: string) => isTried && bad.has(name);
  return (
    <PageFrame title={words.title} parent={{ to: "/runs", label: nav.runs }}>
      <form className="startform" onSubmit={submit}>
        <h1>{words.title}</h1>
        {search.like && <p className="dim">{words.like(tail(search.like))}</p>}
        {like.isError && <ErrorPanel error={like.error} onRetry={() => void like.refetch()} />}
        <FlowFields flow={flow} version={form.version} isWrong={isTried && !flow} onFlow={(next) => { change({ flow: next || undefined, like: undefined }); set({ version: "" }); }} onVersion={(version) => set({ version })} />
        {detail.isError && <ErrorPanel error={detail.error} onRetry={() => void detail.refetch()} />}
        {chosen.isError && <ErrorPanel error={chosen.error} onRetry={() => void chosen.refetch()} />}
        <Params form={form} set={set} variables={variables} reads={definition ? paramsRead(definition.text || JSON.stringify(definition.definition)) : []} shows={shows} />
        <More form={form} set={set} shows={shows} isOpen={search.like !== undefined} />
        {start.isError && <ErrorPanel error={start.error} onRetry={() => body && start.mutate(body)} />}
        <div className="row wrap">
          <button type="submit" className="btn primary" disabled={start.isPending}>{words.start}</button>
          <span className="grow" />
          {body && flow && <><CopyAs text={command(flow, body)}>{common.copyCli}</CopyAs><CopyAs text={curl("POST", `/api/v1/flows/${encodeURIComponent(flow)}/runs`, body)} icon={false}>curl</CopyAs></>}
        </div>
      </form>
    </PageFrame>
  );
}

function command(flow: string, body: RunRequest): string {
  const params = Object.entries(body.params ?? {}).flatMap(([key, value]) => ["-p", `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`]);
  return cli("run", "start", flow, ...(body.version ? ["--version", body.version] : []), ...params, ...(body.account ? ["--account", body.account] : []), "--watch");
}

function FlowFields({ flow, version, isWrong, onFlow, onVersion }: { flow: string; version: string; isWrong: boolean; onFlow: (flow: string) => void; onVersion: (version: string) => void }) {
  const words = useWords(startWords);
  const [text, setText] = useState(flow);
  useEffect(() => setText(flow), [flow]);
  const flows = useQuery({ queryKey: ["flow-names"], staleTime: 60_000, queryFn: ({ signal }) => call("GET /api/v1/flows", { query: { limit: 200 }, signal }) });
  const versions = useQuery({ queryKey: ["versions", flow], enabled: flow !== "", retry: false, queryFn: ({ signal }) => call("GET /api/v1/flows/{flow}/versions", { path: { flow }, signal }) });
  const names = flows.data?.items.map((one) => one.name) ?? [];
  return (
    <div className="flowcols">
      <label className="field"><span>{words.flow}</span>
        <input
          className="input" list="flows" value={text} placeholder={words.flowHint} autoComplete="off" spellCheck={false} aria-invalid={isWrong} autoFocus={flow === ""}
          onChange={(event) => { setText(event.target.value); if (names.includes(event.target.value)) onFlow(event.target.value); }} onBlur={() => text !== flow && onFlow(text.trim())}
        />
        <datalist id="flows">{names.map((name) => <option key={name} value={name} />)}</datalist>
        {isWrong && <small className="err">{words.noFlow}</small>}{flows.data && names.length === 0 && <small>{words.noFlows}</small>}
      </label>
      <label className="field"><span>{words.version}</span>
        <select className="input" value={version} onChange={(event) => onVersion(event.target.value)}>
          <option value="">{words.latest}</option>
          {versions.data?.items.map((one) => <option key={one.id} value={one.version}>{[one.version, one.note.slice(0, 40)].filter(Boolean).join(" · ")}</option>)}
        </select>
      </label>
    </div>
  );
}

interface PartProps { form: StartForm; set: (some: Partial<StartForm>) => void; shows: (name: string) => boolean }

function Params({ form, set, variables, reads, shows }: PartProps & { variables: VariableField[] | undefined; reads: string[] }) {
  const words = useWords(startWords);
  if (variables && !form.isJson) {
    return (
      <fieldset className="stack">
        <ModeSwitch form={form} set={set} />
        {variables.map((field) => (
          <label className="field" key={field.name}><span><code>{field.name}</code> · {words.types[field.type] ?? field.type}{field.isRequired && ` · ${words.required}`}</span>
            {field.type === "object" || field.type === "array"
              ? <textarea className="input mono" rows={3} value={form.fields[field.name] ?? ""} placeholder={field.byDefault} aria-invalid={shows(`field ${field.name}`)} onChange={(event) => set({ fields: { ...form.fields, [field.name]: event.target.value } })} />
              : <input className="input" value={form.fields[field.name] ?? ""} placeholder={field.byDefault === undefined ? "" : words.default(field.byDefault)} aria-invalid={shows(`field ${field.name}`)} onChange={(event) => set({ fields: { ...form.fields, [field.name]: event.target.value } })} />}
            {shows(`field ${field.name}`) && <small className="err">{form.fields[field.name] ? words.badValue(words.types[field.type] ?? field.type) : words.missing}</small>}
          </label>
        ))}
      </fieldset>
    );
  }
  const missing = reads.filter((name) => !form.json.includes(`"${name}"`));
  const add = (name: string) => {
    const { value, error } = readJson(form.json, "object");
    if (!error) set({ json: JSON.stringify({ ...(value as object), [name]: "" }, null, 2) });
  };
  return (
    <fieldset className="stack">
      {variables && <ModeSwitch form={form} set={set} />}
      <JsonField label={words.params} value={form.json} onChange={(json) => set({ json })} wants="object" rows={8} />
      {missing.length > 0 && <div className="row wrap small dim">{words.reads}{missing.map((name) => <button type="button" key={name} className="chip" onClick={() => add(name)}><code>{name}</code>+</button>)}</div>}
    </fieldset>
  );
}

function ModeSwitch({ form, set }: Omit<PartProps, "shows">) {
  const words = useWords(startWords);
  return <div><Segments label={words.params} value={form.isJson ? "json" : "form"} onChange={(mode) => set({ isJson: mode === "json" })} items={[{ id: "form", label: words.form }, { id: "json", label: words.json }]} /></div>;
}

const PRIORITIES = ["lowest", "low", "medium", "high", "highest"];

function More({ form, set, shows, isOpen }: PartProps & { isOpen: boolean }) {
  const words = useWords(startWords);
  const text = (name: "account" | "request" | "labels" | "budget" | "nodes", label: string, hint?: string, error?: string) => (
    <label className="field"><span>{label}</span><input className="input" value={form[name]} autoComplete="off" aria-invalid={shows(name)} onChange={(event) => set({ [name]: event.target.value })} />{shows(name) ? <small className="err">{error}</small> : hint && <small>{hint}</small>}</label>
  );
  return (
    <details open={isOpen || undefined}>
      <summary className="sec">{words.more}</summary>
      <div className="cols" style={{ marginTop: 8 }}>
        {text("account", words.account, words.accountHint)}
        {text("budget", words.budget, undefined, words.badNumber)}
        <label className="field"><span>{words.priority}</span>
          <select className="input" value={form.priority} onChange={(event) => set({ priority: event.target.value })}><option value="">{words.byDefinition}</option>{PRIORITIES.map((one) => <option key={one}>{one}</option>)}</select>
        </label>
        <label className="field"><span>{words.short}</span>
          <select className="input" value={form.short} onChange={(event) => set({ short: event.target.value })}><option value="fail">{words.fail}</option><option value="wait">{words.wait}</option></select>
        </label>
        {text("request", words.request, words.requestHint)}
        {text("labels", words.labels, words.labelsHint, words.badLabel)}
        <label className="field"><span>{words.mode}</span>
          <select className="input" value={form.mode} onChange={(event) => set({ mode: event.target.value })}>{Object.entries(words.modes).map(([id, label]) => <option key={id} value={id}>{label}</option>)}</select>
        </label>
        {form.mode !== "all" && text("nodes", words.nodes)}
        <label className="check"><input type="checkbox" checked={form.manual} onChange={(event) => set({ manual: event.target.checked })} />{words.manual}</label>
      </div>
    </details>
  );
}
