import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { onUnauthorized, setToken } from "../api/client";
import { reconnect } from "../live/live";
import { Dialog } from "../parts/Dialog";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";

/** Asks for a token when the server refuses a request without one; the page behind keeps its state. */
export function SignIn() {
  const words = useWords(commonWords).signIn;
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  useEffect(() => onUnauthorized(() => setOpen(true)), []);
  if (!isOpen) return null;
  const submit = () => {
    setToken(text.trim());
    setOpen(false);
    reconnect();
    void client.invalidateQueries();
  };
  return (
    <Dialog title={words.title} onClose={() => setOpen(false)} onSubmit={submit} footer={<><span className="grow" /><button type="submit" className="btn primary" disabled={!text.trim()}>{words.submit}</button></>}>
      <p className="dim">{words.text}</p>
      <label className="field"><span>{words.token}</span>
        <input className="input" type="password" autoFocus value={text} onChange={(event) => setText(event.target.value)} autoComplete="current-password" /><small>{words.stored}</small>
      </label>
    </Dialog>
  );
}
