import { useState } from "react";
import { store, stored } from "../../api/client";
import { Dialog } from "../../parts/Dialog";
import { Icon } from "../../parts/Icon";
import { Menu } from "../../parts/Menu";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { runsWords } from "../../words/runs";

interface SavedView { name: string; query: string }

const KEY = "windlass.views";

function load(): SavedView[] {
  try {
    const views: unknown = JSON.parse(stored(KEY) ?? "[]");
    return Array.isArray(views) ? views.filter((view): view is SavedView => typeof view?.name === "string" && typeof view?.query === "string") : [];
  } catch {
    return [];
  }
}

/** Queries with names, kept in this browser. */
export function SavedViews({ query, onOpen }: { query: string; onOpen: (query: string) => void }) {
  const words = useWords(runsWords).query;
  const common = useWords(commonWords).action;
  const [views, setViews] = useState(load);
  const [isNaming, setNaming] = useState(false);
  const [name, setName] = useState("");
  const keep = (next: SavedView[]) => { setViews(next); store(KEY, JSON.stringify(next)); };
  const save = () => {
    keep([...views.filter((view) => view.name !== name.trim()), { name: name.trim(), query }]);
    setNaming(false);
  };
  if (views.length === 0 && !query) return null;
  return (
    <span className="wide row">
      {query && <button type="button" className="btn" onClick={() => { setName(""); setNaming(true); }}>{words.save}</button>}
      {views.length > 0 && (
        <Menu className="btn" button={<>{words.saved}<Icon name="down" small /></>}>
          {(close) => views.map((view) => (
            <span key={view.name} className="viewrow">
              <button type="button" className="cut" onClick={() => { close(); onOpen(view.query); }}>{view.name} <small className="mono">{view.query}</small></button>
              <button type="button" className="btn sm icon quiet" aria-label={words.deleteView(view.name)} onClick={() => keep(views.filter((one) => one !== view))}><Icon name="x" small /></button>
            </span>
          ))}
        </Menu>
      )}
      {isNaming && (
        <Dialog title={words.save} onClose={() => setNaming(false)} onSubmit={() => name.trim() && save()} footer={<><span className="grow" /><button type="submit" className="btn primary" disabled={!name.trim()}>{common.save}</button></>}>
          <p><code className="text">{query}</code></p>
          <label className="field"><span>{words.saveName}</span><input className="input" autoFocus maxLength={60} value={name} onChange={(event) => setName(event.target.value)} /></label>
        </Dialog>
      )}
    </span>
  );
}
