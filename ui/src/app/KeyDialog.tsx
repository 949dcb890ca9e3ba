import { useSettings } from "../format/settings";
import { registry } from "../keys/registry";
import { Dialog } from "../parts/Dialog";
import { commonWords } from "../words/common";

const NAMES: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };

function Keys({ of }: { of: string }) {
  const parts = of.startsWith("mod+") ? ["Ctrl", of.slice(4).toUpperCase()] : of.split(" ");
  return <>{parts.map((part, n) => <kbd key={n}>{NAMES[part] ?? part}</kbd>)}</>;
}

/** The help dialog: every key that works now. */
export function KeyDialog({ onClose }: { onClose: () => void }) {
  const { language } = useSettings();
  const words = commonWords[language];
  const groups = new Map<string, { keys: string; label: string }[]>();
  for (const group of registry.list()) {
    const title = group.title?.(language) ?? words.keys.everywhere;
    const of = groups.get(title) ?? [];
    for (const { keys, label } of group.bindings) if (!of.some((one) => one.keys === keys)) of.push({ keys, label: label(language) });
    groups.set(title, of);
  }
  return (
    <Dialog title={words.keys.title} wide onClose={onClose}>
      <div className="keys">
        {[...groups].map(([title, bindings]) => (
          <section key={title} className="stack" style={{ gap: 4 }}>
            <h3>{title}</h3>
            <ul>{bindings.map(({ keys, label }) => <li key={keys}><span>{label}</span><Keys of={keys} /></li>)}</ul>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
