import type { RunView } from "../../api/console";
import { Icon } from "../../parts/Icon";
import { Json } from "../../parts/Json";
import { PayloadView } from "../../parts/Payload";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";

/** The raw values of the run, with downloads. */
export function JsonTab({ view }: { view: RunView }) {
  const words = useWords(runWords).json;
  const base = `/api/v1/runs/${view.run.id}`;
  const whole = (of: string) => `${base}/output?of=${of}`;
  return (
    <div className="eventstab">
      <div className="row wrap"><a className="btn" href={base} download={`${view.run.id}.json`}><Icon name="download" small />{words.run}</a></div>
      <div className="statecols">
        <section className="stack"><PayloadView title={words.params} payload={view.params} whole={whole("params")} /><PayloadView title={words.shared} payload={view.shared} whole={whole("shared")} /></section>
        <section className="stack"><PayloadView title={words.result} payload={view.result} whole={whole("result")} /><div className="sec">{words.run}</div><Json value={view.run} label={words.run} /></section>
      </div>
    </div>
  );
}
