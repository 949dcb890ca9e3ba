// Words of the dead letters.
import type { Words } from "./language";

const en = {
  title: "Dead letters", none: "No dead letter", noneText: "A job whose attempts are used up becomes a dead letter. It stays until a person replays or discards it.",
  views: "View", groups: "Groups", letters: "Letters", allQueues: "All queues", queue: "Queue",
  head: { queue: "Queue", letters: "Letters", last: "Last", first: "First", error: "Error, grouped", kind: "Kind", job: "Job", attempts: "Attempts", payload: "Payload", failed: "Failed" },
  sum: (letters: string, groups: number) => `${letters} dead ${letters === "1" ? "letter" : "letters"} in ${groups} ${String(groups) === "1" ? "group" : "groups"}`, kept: "A dead letter has no expiry.",
  note: "Numbers, ids and quoted words are left out of a group, so one cause is one line.",
  open: "Show the letters of this group", select: (id: string) => `Select ${id}`, attempts: "Show attempts and payload", openJob: "Open the job",
  replay: "Replay…", discard: "Discard…", replayOf: (n: string) => `Replay ${n} dead ${n === "1" ? "letter" : "letters"}`, discardOf: (n: string) => `Discard ${n} dead ${n === "1" ? "letter" : "letters"}`,
  which: "Which", selected: "Selected", thisGroup: "This group", wholeQueue: "Whole queue", inQueue: (queue: string) => `queue ${queue}`,
  patch: "Patch, laid over each payload", patchHint: "Optional. null removes a field.", payload: "Payload", payloadHint: "Replaces the payload of this letter: fields that you remove are removed.", preview: (id: string, added: number, removed: number) => `Preview on ${id}: ${added} added, ${removed} removed.`,
  rate: "Rate", perSecond: "per second", allAtOnce: "all at once", priority: "Priority", keep: "keep", lasts: (time: string) => `Over ${time}.`,
  replayText: "A replayed job keeps its id and its history and goes on with its next attempt.", discardText: "Discarded jobs stay failed. They leave the dead letters and cannot be replayed.",
  most: (n: string) => `One action moves at most ${n}, the oldest first: repeat it for the others.`,
  reason: "Reason, kept in the audit log", reasonNeeded: "A discard needs a reason.", confirmReplay: (n: string) => `Replay ${n}`, confirmDiscard: (n: string) => `Discard ${n}`,
  replayed: (n: number) => `${n} replayed`, discarded: (n: number) => `${n} discarded`, refused: (n: number) => `${n} refused`, result: "Result", moved: (n: number, of: string) => `${n} of ${of} moved.`,
};

const zh: typeof en = {
  title: "死信", none: "没有死信", noneText: "用尽尝试次数的任务成为死信，直到有人重放或丢弃。",
  views: "视图", groups: "分组", letters: "逐条", allQueues: "所有队列", queue: "队列",
  head: { queue: "队列", letters: "条数", last: "最近", first: "最早", error: "错误（分组）", kind: "类型", job: "任务", attempts: "尝试", payload: "负载", failed: "失败时间" },
  sum: (letters, groups) => `${letters} 条死信，${groups} 个分组`, kept: "死信不会过期。",
  note: "分组时忽略数字、ID 和引号中的词，同一原因为一行。",
  open: "显示此分组的死信", select: (id) => `选择 ${id}`, attempts: "显示尝试与负载", openJob: "打开任务",
  replay: "重放…", discard: "丢弃…", replayOf: (n) => `重放 ${n} 条死信`, discardOf: (n) => `丢弃 ${n} 条死信`,
  which: "范围", selected: "所选", thisGroup: "此分组", wholeQueue: "整个队列", inQueue: (queue) => `队列 ${queue}`,
  patch: "补丁，覆盖到每个负载", patchHint: "可选。null 删除字段。", payload: "负载", payloadHint: "替换此死信的负载：删去的字段会被移除。", preview: (id, added, removed) => `在 ${id} 上预览：增加 ${added} 行，删除 ${removed} 行。`,
  rate: "速率", perSecond: "每秒", allAtOnce: "立即全部", priority: "优先级", keep: "不变", lasts: (time) => `持续 ${time}。`,
  replayText: "重放的任务保留 ID 和历史，从下一次尝试继续。", discardText: "丢弃的任务保持失败，离开死信，不能再重放。",
  most: (n) => `一次操作最多处理 ${n} 条，先处理最早的：其余请重复操作。`,
  reason: "原因（记入审计日志）", reasonNeeded: "丢弃必须填写原因。", confirmReplay: (n) => `重放 ${n} 条`, confirmDiscard: (n) => `丢弃 ${n} 条`,
  replayed: (n) => `已重放 ${n} 条`, discarded: (n) => `已丢弃 ${n} 条`, refused: (n) => `拒绝 ${n} 条`, result: "结果", moved: (n, of) => `${of} 条中已处理 ${n} 条。`,
};

export const deadLettersWords: Words<typeof en> = { en, zh };
