import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { setToken } from "../api/client";
import { reconnect } from "../live/live";
import { Dialog } from "../parts/Dialog";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";

export function SignInDialog({ onClose }: { onClose: () => void }) {
  const words = useWords(commonWords).signIn;
  const client = useQueryClient();
  const [text, setText] = useState("");
  const submit = () => {
    setToken(text.trim());
    onClose();
    reconnect();
    void client.invalidateQueries();
  };
  return (
    <Dialog title={words.title} onClose={onClose} onSubmit={submit} footer={<><span className="grow" /><button type="submit" className="btn primary" disabled={!text.trim()}>{words.submit}</button></>}>
      <p className="dim">{words.text}</p>
      <label className="field"><span>{words.token}</span>
        <input className="input" type="password" autoFocus value={text} onChange={(event) => setText(event.target.value)} autoComplete="current-password" /><small>{words.stored}</small>
      </label>
    </Dialog>
  );
}
