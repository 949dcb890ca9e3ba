// Words of the bulk actions.
import type { Words } from "./language";

const en = {
  title: "Bulk actions", one: (action: string, n: string) => `${action} ${n} ${n === "1" ? "run" : "runs"}`, of: (done: string, all: string) => `${done} of ${all}`, succeeded: (n: string) => `${n} succeeded`, failed: (n: string) => `${n} refused`, left: (n: string) => `${n} to do`,
  columns: { status: "Status", action: "Action", query: "Runs", matched: "Matched", failed: "Refused", actor: "By", started: "Started" }, selected: "selected runs", all: "all runs", reason: "Reason", actor: "By", query: "Query", started: "Started", took: "Took",
  failures: "Refused", run: "Run", code: "Code", message: "Message", moreFailures: "Only the first 1,000 are shown.", noFailures: "No run refused.", stop: "Stop…", stopTitle: "Stop the bulk action?", stopText: "Runs that were changed stay changed; the others are left alone.", stopped: "The bulk action stops", keep: "Go on",
  empty: { title: "No bulk actions yet", text: "Select runs in the list and choose an action. It goes on after a restart of the server." },
};

const zh: typeof en = {
  title: "批量操作", one: (action, n) => `${action} ${n} 个运行`, of: (done, all) => `${done} / ${all}`, succeeded: (n) => `${n} 个成功`, failed: (n) => `${n} 个被拒绝`, left: (n) => `${n} 个待处理`,
  columns: { status: "状态", action: "操作", query: "运行", matched: "匹配", failed: "被拒绝", actor: "操作人", started: "开始" }, selected: "选中的运行", all: "全部运行", reason: "原因", actor: "操作人", query: "查询", started: "开始", took: "用时",
  failures: "被拒绝", run: "运行", code: "代码", message: "信息", moreFailures: "只显示前 1,000 个。", noFailures: "没有被拒绝的运行。", stop: "停止…", stopTitle: "停止批量操作？", stopText: "已改变的运行保持改变，其余不受影响。", stopped: "批量操作正在停止", keep: "继续",
  empty: { title: "还没有批量操作", text: "在列表中选择运行并选择操作。服务器重启后会继续执行。" },
};

export const bulkWords: Words<typeof en> = { en, zh };
