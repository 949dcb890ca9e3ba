import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { Icon } from "./Icon";

interface DialogProps {
  title: ReactNode;
  subtitle?: ReactNode;
  children: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
  onClose: () => void;
  onSubmit?: () => void;
}

/** The element that has the focus at first: a field, or the button of the action. */
const FIRST = ".body :is(input, textarea, select):not(:disabled), footer button[type=submit]:not(:disabled)";

/** A modal dialog on the native element: the browser keeps the focus inside, closes it on Escape and returns the focus. */
export function Dialog({ title, subtitle, children, footer, wide, onClose, onSubmit }: DialogProps) {
  const words = useWords(commonWords).action;
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    // The element must be back in the document before it can get the focus again.
    const before = document.activeElement as HTMLElement | null;
    if (dialog && !dialog.open) dialog.showModal();
    // The browser would take the first button, which closes: the first field is nearer to what a person wants to do.
    dialog?.querySelector<HTMLElement>(FIRST)?.focus();
    return () => {
      dialog?.close();
      if (before?.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    event.stopPropagation();
    onSubmit?.();
  };
  return (
    <dialog ref={element} className={wide ? "wide-dialog" : undefined} aria-labelledby={id} onCancel={(event) => { event.preventDefault(); onClose(); }}>
      <form onSubmit={submit}>
        <header>
          <div className="grow"><h2 id={id}>{title}</h2>{subtitle && <div className="small dim">{subtitle}</div>}</div>
          <button type="button" className="btn sm icon quiet" aria-label={words.close} onClick={onClose}><Icon name="x" small /></button>
        </header>
        <div className="body">{children}</div>
        {footer && <footer>{footer}</footer>}
      </form>
    </dialog>
  );
}
