import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/client";
import type { AccountInfo } from "../../api/openapi";
import { money } from "../../format/number";
import { cli, curl } from "../../format/shell";
import { ActionDialog } from "../../parts/ActionDialog";
import { toast } from "../../parts/Toasts";
import { accountsWords } from "../../words/accounts";
import { useWords } from "../../words/language";

function useReread(key: string) {
  const client = useQueryClient();
  return () => void client.invalidateQueries({ queryKey: [key] });
}

export function OpenDialog({ onClose }: { onClose: () => void }) {
  const words = useWords(accountsWords);
  const reread = useReread("accounts");
  const [id, setId] = useState("");
  const [name, setName] = useState("");
  const body = { id, ...(name && { name }) };
  return (
    <ActionDialog
      title={words.openTitle} confirm={words.open} disabled={!id.trim()} cli={cli("account", "open", id, name && "--name", name)} curl={curl("POST", "/api/v1/accounts", body)}
      run={() => call("POST /api/v1/accounts", { body })} onDone={() => { toast(words.opened(id)); reread(); }} onClose={onClose}
    >
      <label className="field"><span>{words.id}</span><input className="input mono" autoFocus value={id} onChange={(event) => setId(event.target.value)} /></label>
      <label className="field"><span>{words.name}</span><input className="input" value={name} onChange={(event) => setName(event.target.value)} /></label>
    </ActionDialog>
  );
}

/** A key of its own for each dialog: sending twice books once. `crypto.randomUUID` is missing on plain http. */
function newKey(): string {
  return `console-${[...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

export function DepositDialog({ account, onClose }: { account: AccountInfo; onClose: () => void }) {
  const words = useWords(accountsWords);
  const reread = useReread("accounts");
  const [amount, setAmount] = useState("");
  const [key, setKey] = useState(newKey);
  const body = { amount: Number(amount), key };
  return (
    <ActionDialog
      title={words.depositTitle(account.id)} confirm={words.deposit} disabled={!/^\d+$/.test(amount) || !key} cli={cli("account", "deposit", account.id, amount, "--key", key)}
      curl={curl("POST", `/api/v1/accounts/${encodeURIComponent(account.id)}/deposit`, body)} run={() => call("POST /api/v1/accounts/{id}/deposit", { path: { id: account.id }, body })}
      onDone={({ created }) => { toast(created ? words.deposited(money(body.amount)) : words.again); reread(); }} onClose={onClose}
    >
      <label className="field"><span>{words.amount}</span><input className="input" autoFocus inputMode="numeric" value={amount} onChange={(event) => setAmount(event.target.value)} /></label>
      <label className="field"><span>{words.key}</span><input className="input mono" value={key} onChange={(event) => setKey(event.target.value)} /><small>{words.keyHint}</small></label>
    </ActionDialog>
  );
}

export function PriceDialog({ service: given, onClose }: { service?: string; onClose: () => void }) {
  const words = useWords(accountsWords);
  const reread = useReread("prices");
  const [form, setForm] = useState({ service: given ?? "", unit: "", units: "1", least: "0" });
  const change = (part: Partial<typeof form>) => setForm({ ...form, ...part });
  const units = /^\d+$/.test(form.units) ? Number(form.units) : form.units;
  const body = { unit_price: Number(form.unit), units, min_unit: Number(form.least) || 0 };
  return (
    <ActionDialog
      title={words.setPriceTitle} confirm={words.setPrice} disabled={!form.service || !/^\d+$/.test(form.unit)} cli={cli("price", "set", form.service, form.unit, "--units", form.units, "--min", form.least)}
      curl={curl("PUT", `/api/v1/prices/${encodeURIComponent(form.service)}`, body)} run={() => call("PUT /api/v1/prices/{service}", { path: { service: form.service }, body })}
      onDone={() => { toast(words.priceSet(form.service)); reread(); }} onClose={onClose}
    >
      <label className="field"><span>{words.service}</span><input className="input" autoFocus={!given} value={form.service} onChange={(event) => change({ service: event.target.value })} /></label>
      <div className="cols three">
        <label className="field"><span>{words.unitPrice}</span><input className="input" inputMode="numeric" value={form.unit} onChange={(event) => change({ unit: event.target.value })} /></label>
        <label className="field"><span>{words.head.units}</span><input className="input mono" value={form.units} onChange={(event) => change({ units: event.target.value })} /></label>
        <label className="field"><span>{words.head.least}</span><input className="input" inputMode="numeric" value={form.least} onChange={(event) => change({ least: event.target.value })} /></label>
      </div>
    </ActionDialog>
  );
}

export function RemovePriceDialog({ service, onClose }: { service: string; onClose: () => void }) {
  const words = useWords(accountsWords);
  const reread = useReread("prices");
  return (
    <ActionDialog
      title={words.removePriceTitle(service)} confirm={words.removePrice} danger curl={curl("DELETE", `/api/v1/prices/${encodeURIComponent(service)}`)}
      run={() => call("DELETE /api/v1/prices/{service}", { path: { service } })} onDone={() => { toast(words.priceRemoved(service)); reread(); }} onClose={onClose}
    ><p>{words.removePriceText}</p></ActionDialog>
  );
}
