import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { actor, call, request, setActor, setToken, token } from "../../api/client";
import type { About } from "../../api/console";
import { PageFrame } from "../../app/PageFrame";
import { bytes } from "../../format/number";
import { changeSettings, type Language, type Theme, useSettings } from "../../format/settings";
import { duration, type Zone } from "../../format/time";
import { reconnect } from "../../live/live";
import { CopyButton } from "../../parts/Copy";
import { Icon } from "../../parts/Icon";
import { Panel } from "../../parts/Panel";
import { Segments } from "../../parts/Tabs";
import { Ago } from "../../parts/Time";
import { toast } from "../../parts/Toasts";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { settingsWords } from "../../words/settings";
import "./settings.css";

const REREAD_MS = 10_000;

export function SettingsPage() {
  const words = useWords(settingsWords);
  return (
    <PageFrame title={words.title}>
      <div className="settings"><Viewer /><AboutServer /></div>
    </PageFrame>
  );
}

function Viewer() {
  const words = useWords(settingsWords);
  const common = useWords(commonWords);
  const { theme, language, zone } = useSettings();
  return (
    <section className="stack">
      <h2>{words.viewer}</h2>
      <div className="field"><span className="label">{words.theme}</span><div><Segments<Theme> label={words.theme} value={theme} onChange={(next) => changeSettings({ theme: next })} items={(["system", "light", "dark"] as const).map((id) => ({ id, label: common.theme[id] }))} /></div></div>
      <div className="field"><span className="label">{words.language}</span><div><Segments<Language> label={words.language} value={language} onChange={(next) => changeSettings({ language: next })} items={(["en", "zh"] as const).map((id) => ({ id, label: words.languages[id] }))} /></div></div>
      <div className="field"><span className="label">{words.zone}</span><div><Segments<Zone> label={words.zone} value={zone} onChange={(next) => changeSettings({ zone: next })} items={[{ id: "local", label: words.local }, { id: "utc", label: words.utc }]} /></div></div>
      <NameForm />
      <TokenForm />
      <p className="small dim">{words.keys}</p>
    </section>
  );
}

function NameForm() {
  const words = useWords(settingsWords);
  const [name, setName] = useState(actor() ?? "");
  return (
    <form onSubmit={(event) => { event.preventDefault(); setActor(name.trim()); toast(words.saved); }}>
      <label className="field"><span>{words.name}</span><span className="row"><input className="input" value={name} maxLength={200} autoComplete="username" onChange={(event) => setName(event.target.value)} /><button type="submit" className="btn">{words.save}</button></span><small>{words.nameText}</small></label>
    </form>
  );
}

function TokenForm() {
  const words = useWords(settingsWords);
  const client = useQueryClient();
  const [text, setText] = useState("");
  const [isSet, setIsSet] = useState(token() !== undefined);
  const save = (value: string | undefined) => {
    setToken(value);
    setText("");
    setIsSet(value !== undefined);
    reconnect();
    void client.invalidateQueries();
  };
  return (
    <form onSubmit={(event) => { event.preventDefault(); if (text.trim()) { save(text.trim()); toast(words.saved); } }}>
      <label className="field"><span>{words.token}</span>
        <span className="row"><input className="input" type="password" value={text} placeholder={isSet ? words.tokenSet : words.noToken} autoComplete="off" onChange={(event) => setText(event.target.value)} /><button type="submit" className="btn" disabled={!text.trim()}>{words.save}</button>{isSet && <button type="button" className="btn danger" onClick={() => save(undefined)}>{words.forget}</button>}</span>
        <small>{words.tokenText}</small>
      </label>
    </form>
  );
}

function AboutServer() {
  const words = useWords(settingsWords);
  const about = useQuery({ queryKey: ["about", "page"], queryFn: ({ signal }) => request<About>("GET", "/api/v1/about", { signal }), refetchInterval: REREAD_MS });
  const stats = useQuery({ queryKey: ["stats"], queryFn: ({ signal }) => call("GET /api/v1/stats", { signal }), refetchInterval: REREAD_MS });
  return (
    <section className="stack">
      <div className="row"><h2 className="grow">{words.about}</h2><a className="link" href="/docs/">{words.guides}</a><a className="link" href="/docs/api">{words.api}</a></div>
      <Health />
      <Panel query={about}>
        {(info) => (
          <>
            <dl className="facts">
              <dt>{words.version}</dt><dd>{info.version}</dd>
              <dt>{words.server}</dt><dd className="mono">{info.server} <CopyButton text={info.server} /></dd>
              <dt>{words.project}</dt><dd>{info.project}</dd>
              <dt>{words.up}</dt><dd>{duration(info.up_ms)}</dd>
              <dt>{words.retention}</dt><dd>{info.retain_ms == null ? words.forEver : duration(info.retain_ms)}</dd>
              <dt>{words.silence}</dt><dd>{duration(info.worker_ttl_ms)}</dd>
              {stats.data && <><dt>{words.memory}</dt><dd>{stats.data.process.resident_bytes != null ? bytes(stats.data.process.resident_bytes) : "–"}</dd></>}
            </dl>
            <div className="frame"><div className="scroll" tabIndex={0}><table aria-label={words.servers}>
              <thead><tr><th>{words.server}</th><th>{words.version}</th><th>{words.started}</th><th>{words.heartbeat}</th></tr></thead>
              <tbody>{info.servers.map((one) => <tr key={one.id}><td className="cut">{one.name} <span className="mono faint">{one.id.slice(-4)}</span></td><td>{one.version}</td><td className="dim"><Ago at={one.started_at} /></td><td className="dim"><Ago at={one.heartbeat_at} /></td></tr>)}</tbody>
            </table></div></div>
          </>
        )}
      </Panel>
    </section>
  );
}

/** The answer of `/readyz`; a server that is not ready answers 503 with the same body. */
function Health() {
  const words = useWords(settingsWords);
  const ready = useQuery({ queryKey: ["readyz"], queryFn: ({ signal }) => call("GET /readyz", { signal }), refetchInterval: REREAD_MS, retry: false });
  return (
    <Panel query={ready} lines={1}>
      {(health) => {
        const troubles = [...(health.troubles ?? []), ...(health.warnings ?? [])];
        return (
          <div className={`note ${health.ready ? (troubles.length > 0 ? "retry" : "ok") : "fail"}`}>
            <Icon name={health.ready && troubles.length === 0 ? "check" : "warn"} />
            <span className="text">{health.ready ? words.ready : words.notReady}{troubles.length > 0 && `: ${troubles.join("; ")}`}</span>
          </div>
        );
      }}
    </Panel>
  );
}
