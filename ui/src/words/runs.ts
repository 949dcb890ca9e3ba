// Words of the list of runs.
import type { Words } from "./language";

const en = {
  title: "Runs", start: "Start run", all: "All",
  columns: { status: "Status", flow: "Flow", run: "Run", node: "Current node", progress: "Progress", attempts: "Steps", started: "Started", duration: "Duration", account: "Account", cost: "Cost", trigger: "Trigger", labels: "Labels", title: "Columns" },
  query: { label: "Filter runs", placeholder: "Add a filter: status, flow, node, error~, params.x=", remove: (term: string) => `Remove ${term}`, submit: "Apply", hint: "Enter applies, Tab completes", save: "Save view", saved: "Saved views", saveName: "Name of the view", deleteView: (name: string) => `Delete ${name}` },
  values: {
    status: "status of the run", flow: "flow, NAME or NAME@3", version: "version number", account: "account that pays", node: "node that was entered last", worker: "worker that holds a call now", error: "kind of error", errorText: "error contains the text",
    params: "parameter equals", label: "label equals", parent: "parent run", schedule: "schedule that started it", request: "request id", id: "id begins with", trigger: "api, parent or schedule", after: "created at or after: 1h, 7d, 2026-01-31", before: "created before", longer: "runs longer than: 10s, 5m", shorter: "runs shorter than",
  },
  empty: { title: "No runs yet", text: "A run is one execution of a flow. Start one here, with the command line or over HTTP." },
  selected: (n: number) => `${n} selected`, selectMatching: (n: string) => `Select all ${n} that match`, allMatching: (n: string) => `All ${n} that match are selected`, selectRow: (id: string) => `Select run ${id}`,
  actions: { cancel: "Cancel…", retry: "Retry failed nodes…", rerun: "Rerun…", pause: "Pause…", resume: "Resume…", signal: "Signal…", export: "Export", bulk: "Bulk actions" },
  dialog: {
    title: (action: string, n: string) => `${action} ${n} ${n === "1" ? "run" : "runs"}`, names: { cancel: "Cancel", retry: "Retry", rerun: "Rerun", pause: "Pause", resume: "Resume", signal: "Signal" } as Record<string, string>,
    from: "From node", key: "Key", value: "Value, JSON", dryRun: (apply: string, refuse: string) => `Dry run: ${apply} would change, ${refuse} would be refused.`, dryAll: (apply: string) => `Dry run: ${apply} would change.`, checking: "Dry run…", query: "Query", ids: (n: number) => `${n} selected ${n === 1 ? "run" : "runs"}`,
  },
  foot: (from: number, to: number) => `${from}–${to} · newest first`, partial: "The server examined as many rows as one request may; older pages may have more.", counts: (age: string) => `counts from ${age}`,
  keys: { title: "List of runs" },
};

const zh: typeof en = {
  title: "运行", start: "启动运行", all: "全部",
  columns: { status: "状态", flow: "流程", run: "运行", node: "当前节点", progress: "进度", attempts: "步数", started: "开始", duration: "用时", account: "账户", cost: "费用", trigger: "触发方式", labels: "标签", title: "列" },
  query: { label: "筛选运行", placeholder: "添加筛选：status、flow、node、error~、params.x=", remove: (term) => `移除 ${term}`, submit: "应用", hint: "回车应用，Tab 补全", save: "保存视图", saved: "已保存的视图", saveName: "视图名称", deleteView: (name) => `删除 ${name}` },
  values: {
    status: "运行的状态", flow: "流程：名称或 名称@3", version: "版本号", account: "付费账户", node: "最后进入的节点", worker: "正持有调用的执行器", error: "错误类型", errorText: "错误包含文本",
    params: "参数等于", label: "标签等于", parent: "父运行", schedule: "由哪个定时启动", request: "请求 ID", id: "ID 前缀", trigger: "api、parent 或 schedule", after: "创建不早于：1h、7d、2026-01-31", before: "创建早于", longer: "用时长于：10s、5m", shorter: "用时短于",
  },
  empty: { title: "还没有运行", text: "运行是流程的一次执行。可在此处、命令行或通过 HTTP 启动。" },
  selected: (n) => `已选 ${n} 项`, selectMatching: (n) => `选择全部 ${n} 个匹配的运行`, allMatching: (n) => `已选择全部 ${n} 个匹配的运行`, selectRow: (id) => `选择运行 ${id}`,
  actions: { cancel: "取消…", retry: "重试失败节点…", rerun: "重跑…", pause: "暂停…", resume: "恢复…", signal: "发送信号…", export: "导出", bulk: "批量操作" },
  dialog: {
    title: (action, n) => `${action} ${n} 个运行`, names: { cancel: "取消", retry: "重试", rerun: "重跑", pause: "暂停", resume: "恢复", signal: "发送信号" },
    from: "起始节点", key: "键", value: "值（JSON）", dryRun: (apply, refuse) => `试算：${apply} 个会改变，${refuse} 个会被拒绝。`, dryAll: (apply) => `试算：${apply} 个会改变。`, checking: "试算中…", query: "查询", ids: (n) => `${n} 个选中的运行`,
  },
  foot: (from, to) => `第 ${from}–${to} 条 · 最新在前`, partial: "服务器已检查一次请求允许的行数，更早的页面可能还有。", counts: (age) => `计数为${age}`,
  keys: { title: "运行列表" },
};

export const runsWords: Words<typeof en> = { en, zh };
