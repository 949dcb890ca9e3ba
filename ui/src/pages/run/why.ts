// The sentence for each reason why a run waits. The server says the reason as a code with values; the words are here.
import type { FlowGraph } from "../../api/console";
import type { WaitReason } from "../../api/openapi";
import { money } from "../../format/number";
import { duration, ms } from "../../format/time";
import { nameInText } from "../../graph/names";
import type { Family } from "../../parts/status";
import type { runWords } from "../../words/run";

type WhyWords = (typeof runWords)["en"]["why"];

const FAMILIES: Record<string, Family> = {
  retry: "retry", worker: "fail", balance: "retry", budget: "retry", limit: "retry", queue: "retry", answer: "run", turn: "run",
  signal: "wait", approval: "wait", timer: "wait", report: "wait", resume: "wait", start: "idle", step: "wait", cancel_confirmation: "idle",
};

export function familyOfReason(reason: WaitReason): Family {
  return FAMILIES[reason.waits_for] ?? "idle";
}

/** The reason as a sentence; an unknown one is told in the server's words. */
export function whyText(reason: WaitReason, now: number, words: WhyWords, graph?: FlowGraph | null): string {
  const { node, service, key } = reason;
  const name = nameInText(graph, node);
  const end = ms(reason.until);
  const left = end === undefined ? undefined : duration(Math.max(0, end - now));
  const people = reason.assignees?.length ? reason.assignees.join(", ") : words.anyone;
  switch (reason.waits_for) {
    case "retry": return words.retry(name, reason.attempt ?? undefined, left ?? "–", short(reason.after));
    case "signal": return left ? words.signalUntil(name, key ?? "", left) : words.signal(name, key ?? "");
    case "approval": return left ? words.approvalUntil(name, people, left) : words.approval(name, people);
    case "timer": return words.timer(name, left ?? "–");
    case "answer": return words.answer(name, service ?? undefined, reason.attempt ?? undefined);
    case "worker": return reason.n_workers ? words.workerBusy(name, service ?? undefined, reason.n_workers) : words.worker(name, service ?? undefined);
    case "queue": return words.queue(name);
    case "limit": return words.limit(name);
    case "report": return words.report(name);
    case "balance": return words.balance(name, money(reason.amount ?? 0), reason.missing == null ? undefined : money(reason.missing));
    case "budget": return words.budget(name);
    case "resume": case "start": case "step": case "turn": case "cancel_confirmation": return words[reason.waits_for as "resume"];
    default: return node ? `\`${node.slice(0, 80)}\`: ${reason.text.slice(0, 400)}` : reason.text.slice(0, 400);
  }
}

/** The first line of an error, cut. */
export function short(error: string | null | undefined, length = 120): string | undefined {
  const line = error?.split("\n")[0]?.trim();
  if (!line) return undefined;
  return line.length > length ? `${line.slice(0, length)}…` : line.replace(/\.$/, "");
}
