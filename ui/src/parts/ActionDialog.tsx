import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { CopyAs } from "./Copy";
import { Dialog } from "./Dialog";
import { ErrorPanel } from "./Errors";

interface ActionProps<T> {
  title: ReactNode;
  subtitle?: ReactNode;
  /** The text of the button; it has the count in it. */
  confirm: ReactNode;
  /** The text of the other button. */
  keep?: ReactNode;
  danger?: boolean;
  wide?: boolean;
  disabled?: boolean;
  /** Asks for a reason; it is handed to `run`. */
  withReason?: boolean;
  /** Must be typed before the button works; only for purging. */
  typed?: string;
  cli?: string | ((reason: string) => string);
  curl?: string | ((reason: string) => string);
  children?: ReactNode;
  run: (reason: string | undefined) => Promise<T>;
  onDone?: (result: T) => void;
  onClose: () => void;
}

/** A dialog of one action: it names the target, asks for the reason, shows the error of a refusal, and offers the same
 * action as a command. */
export function ActionDialog<T>(props: ActionProps<T>) {
  const words = useWords(commonWords).action;
  const [reason, setReason] = useState("");
  const [name, setName] = useState("");
  const action = useMutation({
    mutationFn: () => props.run(reason.trim() || undefined),
    onSuccess: (result) => { props.onClose(); props.onDone?.(result); },
  });
  const blocked = props.disabled || action.isPending || (props.typed !== undefined && name !== props.typed);
  const text = (of: string | ((reason: string) => string)) => (typeof of === "string" ? of : of(reason.trim()));
  const footer = (
    <>
      {props.cli && <CopyAs text={text(props.cli)}>{words.copyCli}</CopyAs>}
      {props.curl && <CopyAs text={text(props.curl)} icon={false}>curl</CopyAs>}
      <span className="grow" />
      <button type="button" className="btn" onClick={props.onClose}>{props.keep ?? words.cancel}</button>
      <button type="submit" className={`btn primary${props.danger ? " danger" : ""}`} disabled={blocked}>{props.confirm}</button>
    </>
  );
  return (
    <Dialog title={props.title} subtitle={props.subtitle} wide={props.wide} footer={footer} onClose={props.onClose} onSubmit={() => blocked || action.mutate()}>
      {props.children}
      {props.typed !== undefined && (
        <label className="field"><span>{words.typeName(props.typed)}</span><input className="input" value={name} onChange={(event) => setName(event.target.value)} autoComplete="off" /></label>
      )}
      {props.withReason && (
        <label className="field"><span>{words.reason}</span><input className="input" value={reason} maxLength={1000} placeholder={words.reasonHint} onChange={(event) => setReason(event.target.value)} /></label>
      )}
      {action.isError && <ErrorPanel error={action.error} onRetry={() => blocked || action.mutate()} />}
    </Dialog>
  );
}
