// Words of the audit log.
import type { Words } from "./language";

const en = {
  title: "Audit log", none: "No change yet", noneText: "Every change that a client asks for has a line here, also a refused one. Lines are kept for ever.",
  head: { at: "Time", who: "Who", what: "Change", subject: "Subject", result: "Result", reason: "Reason", from: "From" },
  filters: { who: "Who", what: "Change", subject: "Subject", any: "any change" }, apply: "Filter", result: { done: "Done", refused: "Refused", failed: "Failed" } as Record<string, string>, request: "Request", newest: "Newest first", oldest: "Oldest first", order: "Order", refresh: "Read again",
};

const zh: typeof en = {
  title: "审计日志", none: "还没有更改", noneText: "客户端请求的每项更改在此有一行，被拒绝的也有。记录永久保留。",
  head: { at: "时间", who: "操作者", what: "更改", subject: "对象", result: "结果", reason: "原因", from: "来源" },
  filters: { who: "操作者", what: "更改", subject: "对象", any: "任何更改" }, apply: "筛选", result: { done: "完成", refused: "已拒绝", failed: "失败" }, request: "请求", newest: "最新在前", oldest: "最早在前", order: "顺序", refresh: "重新读取",
};

export const auditWords: Words<typeof en> = { en, zh };
