// Lays a patch of the event stream over the view of a run. Parts are replaced whole by their key, so a patch that comes
// twice changes nothing; parts that did not change keep their identity, so only changed nodes render again.
import type { AttemptView, RunPatch, RunView } from "../api/console";

/** The key of an attempt: its fence, or its place where it was never a call. */
export function attemptKey(of: Pick<AttemptView, "fence" | "node" | "visit" | "attempt">): string {
  return of.fence != null ? `#${of.fence}` : `${of.node} ${of.visit} ${of.attempt}`;
}

function mergeAttempts(old: AttemptView[], changed: AttemptView[]): AttemptView[] {
  const next = [...old];
  const places = new Map(old.map((attempt, n) => [attemptKey(attempt), n]));
  for (const attempt of changed) {
    const key = attemptKey(attempt);
    const place = places.get(key);
    if (place === undefined) {
      places.set(key, next.length);
      next.push(attempt);
    } else {
      next[place] = attempt;
    }
  }
  return next;
}

/** The view after the patch; `"refetch"` when only the server can say it. */
export function applyPatch(view: RunView, patch: RunPatch): RunView | "refetch" {
  if (patch.seq < view.seq) return view;
  if (patch.reset) return "refetch";
  const node_states = { ...view.node_states, ...patch.node_states };
  for (const path of patch.removed ?? []) delete node_states[path];
  return {
    ...view,
    seq: patch.seq,
    run: patch.run ?? view.run,
    node_states: patch.node_states || patch.removed ? node_states : view.node_states,
    attempts: patch.attempts ? mergeAttempts(view.attempts, patch.attempts) : view.attempts,
    why: patch.why ?? view.why,
  };
}
