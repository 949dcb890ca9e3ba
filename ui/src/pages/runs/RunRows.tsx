import { memo } from "react";
import type { RunSummary } from "../../api/openapi";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";
import { runsWords } from "../../words/runs";
import type { COLUMNS } from "./columns";

interface RunRowsProps {
  rows: RunSummary[];
  columns: typeof COLUMNS;
  selected: ReadonlySet<string>;
  cursor: number;
  onMark: (index: number, isRange: boolean) => void;
  onMarkAll: (on: boolean) => void;
}

export function RunRows({ rows, columns, selected, cursor, onMark, onMarkAll }: RunRowsProps) {
  const words = useWords(runsWords);
  const common = useWords(commonWords).action;
  const all = rows.every((run) => selected.has(run.id));
  return (
    <div className="frame scroll">
      <table>
        <thead>
          <tr>
            <th className="box"><input type="checkbox" aria-label={common.selectAll} checked={all && rows.length > 0} ref={(box) => { if (box) box.indeterminate = selected.size > 0 && !all; }} onChange={(event) => onMarkAll(event.target.checked)} /></th>
            {columns.map(({ id, name }) => <th key={id} className={name?.includes("num") ? "num" : undefined}>{words.columns[id]}</th>)}
          </tr>
        </thead>
        <tbody>{rows.map((run, n) => <Row key={run.id} run={run} index={n} columns={columns} isSelected={selected.has(run.id)} isCursor={n === cursor} onMark={onMark} />)}</tbody>
      </table>
    </div>
  );
}

const Row = memo(function Row({ run, index, columns, isSelected, isCursor, onMark }: { run: RunSummary; index: number; columns: typeof COLUMNS; isSelected: boolean; isCursor: boolean; onMark: RunRowsProps["onMark"] }) {
  const words = useWords(runsWords);
  const trigger = useWords(runWords).trigger;
  return (
    <tr data-row={index} data-run={run.id} aria-selected={isSelected} className={isCursor ? "cursor" : undefined}>
      <td className="box"><input type="checkbox" aria-label={words.selectRow(run.id.slice(-4))} checked={isSelected} onChange={() => undefined} onClick={(event) => onMark(index, event.shiftKey)} /></td>
      {columns.map(({ id, name, cell }) => <td key={id} className={name}>{cell(run, (of) => trigger[of] ?? of)}</td>)}
    </tr>
  );
}, (before, after) => before.run === after.run && before.isSelected === after.isSelected && before.isCursor === after.isCursor && before.columns === after.columns && before.index === after.index && before.onMark === after.onMark);
