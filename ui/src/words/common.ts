// Words of the frame and of the shared parts.
import type { TimeUnit } from "../format/time";
import type { Words } from "./language";

const en = {
  nav: {
    main: "Main",
    overview: "Overview", runs: "Runs", flows: "Flows", queues: "Queues", deadLetters: "Dead letters", workers: "Workers",
    schedules: "Schedules", approvals: "Approvals", accounts: "Accounts", audit: "Audit log", settings: "Settings",
    docs: "Documentation", bulk: "Bulk actions", jobs: "Jobs", menu: "Menu", fold: "Collapse", skip: "Skip to content", servers: (n: number) => `${n} ${n === 1 ? "server" : "servers"}`,
  },
  live: {
    live: "Live", connecting: "Reconnecting", polling: "Polling", paused: "Paused",
    updated: (age: string) => `updated ${age}`,
    toPause: "Pause live updates", toResume: "Resume live updates",
  },
  time: {
    now: "now",
    ago: (n: number, unit: TimeUnit) => `${n} ${unit} ago`,
    ahead: (n: number, unit: TimeUnit) => `in ${n} ${unit}`,
  },
  status: {
    pending: "Pending", running: "Running", waiting: "Waiting", paused: "Paused", canceling: "Canceling", completed: "Completed",
    failed: "Failed", canceled: "Canceled", queued: "Queued", suspended: "Suspended", retrying: "Retrying", dead: "Dead",
    skipped: "Skipped", ok: "Ok", error: "Error", parked: "Waiting for money", online: "Online", stale: "Stale", draining: "Draining", offline: "Offline",
    draft: "Draft", published: "Published", archived: "Archived", deprecated: "Deprecated", enabled: "Enabled", disabled: "Disabled",
    done: "Done", timeout: "Timed out", lost: "Lost", succeeded: "Succeeded",
  } as Record<string, string>,
  error: {
    title: "Something went wrong",
    network: "The server does not answer. Check that it runs, then retry.",
    request: "request id",
    retry: "Retry",
    retryIn: (seconds: number) => `The server asks to retry in ${seconds} s.`,
    page: "This panel has failed. The rest of the page still works.",
    hint: (text: string) => `Hint: ${text}`,
    missing: "There is no page at this address.",
    toOverview: "Open the overview",
    chunk: "A part of the page could not be loaded. The server may have been upgraded.",
    reload: "Reload",
  },
  action: {
    cancel: "Cancel", close: "Close", save: "Save", copy: "Copy", copied: "Copied", copyId: "Copy id", copyCli: "Copy as CLI", more: "More",
    reason: "Reason, kept in the audit log", reasonHint: "optional", clear: "Clear", open: "Open", show: "Show", download: "Download", search: "Search",
    confirm: "Confirm", back: "Back", refresh: "Refresh", edit: "Edit", delete: "Delete", create: "Create", loadMore: "Show more", all: "All",
    newer: "Newer", older: "Older", select: "Select", selectAll: "Select all on this page", dismiss: "Dismiss",
    typeName: (name: string) => `Type ${name} to confirm`,
  },
  find: { label: "Find or jump to", placeholder: "Id, flow, queue or page", none: "Nothing found", pages: "Pages", results: "Results", run: "Run", flow: "Flow", queue: "Queue", job: "Job", hint: "Enter opens, Esc closes" },
  keys: {
    title: "Keyboard", everywhere: "Everywhere", then: "then",
    help: "Show this help", search: "Focus the search field", find: "Find or jump to", goTo: (page: string) => `Go to: ${page}`, down: "Next row", up: "Previous row",
    openRow: "Open the row", mark: "Select the row", back: "Close or go back", pause: "Pause or resume live updates", theme: "Change the theme", fold: "Collapse the navigation",
  },
  signIn: {
    title: "Sign in", text: "This server asks for a token. The page keeps its state.", token: "Token", submit: "Sign in", stored: "Stored in this browser only.",
  },
  empty: { nothing: "Nothing yet", noMatch: "Nothing matches", clear: "Clear the filter", examples: "Load the examples", loading: "Loading" },
  payload: {
    cut: (shown: string, all: string) => `${shown} of ${all} shown.`, all: (size: string) => `Load all, ${size}`, none: "none", download: "Download",
    folded: "Wrap lines", notJson: "Not valid JSON.",
  },
  list: { shown: (n: number) => `${n} shown`, newRows: (n: number) => `${n} new`, selected: (n: number) => `${n} selected`, page: (n: number) => `Page ${n}` },
  theme: { system: "System", light: "Light", dark: "Dark" },
};

const zh: typeof en = {
  nav: {
    main: "主导航",
    overview: "概览", runs: "运行", flows: "流程", queues: "队列", deadLetters: "死信", workers: "执行器",
    schedules: "定时", approvals: "审批", accounts: "账户", audit: "审计日志", settings: "设置",
    docs: "文档", bulk: "批量操作", jobs: "任务", menu: "菜单", fold: "收起", skip: "跳到正文", servers: (n) => `${n} 台服务器`,
  },
  live: {
    live: "实时", connecting: "正在重连", polling: "轮询中", paused: "已暂停",
    updated: (age) => `${age}更新`,
    toPause: "暂停实时更新", toResume: "恢复实时更新",
  },
  time: {
    now: "刚刚",
    ago: (n, unit) => `${n} ${{ s: "秒", m: "分钟", h: "小时", d: "天" }[unit]}前`,
    ahead: (n, unit) => `${n} ${{ s: "秒", m: "分钟", h: "小时", d: "天" }[unit]}后`,
  },
  status: {
    pending: "未开始", running: "运行中", waiting: "等待中", paused: "已暂停", canceling: "取消中", completed: "已完成",
    failed: "失败", canceled: "已取消", queued: "排队中", suspended: "已挂起", retrying: "重试中", dead: "死信",
    skipped: "已跳过", ok: "成功", error: "错误", parked: "等待余额", online: "在线", stale: "失联", draining: "排空中", offline: "离线",
    draft: "草稿", published: "已发布", archived: "已归档", deprecated: "已弃用", enabled: "已启用", disabled: "已停用",
    done: "完成", timeout: "超时", lost: "丢失", succeeded: "成功",
  },
  error: {
    title: "出错了",
    network: "服务器没有响应。请确认它正在运行，然后重试。",
    request: "请求编号",
    retry: "重试",
    retryIn: (seconds) => `服务器要求 ${seconds} 秒后重试。`,
    page: "此面板出错，页面其余部分仍可使用。",
    hint: (text) => `提示：${text}`,
    missing: "此地址没有页面。",
    toOverview: "打开概览",
    chunk: "页面的一部分无法加载，服务器可能已升级。",
    reload: "重新加载",
  },
  action: {
    cancel: "取消", close: "关闭", save: "保存", copy: "复制", copied: "已复制", copyId: "复制 ID", copyCli: "复制为命令行", more: "更多",
    reason: "原因（记入审计日志）", reasonHint: "可选", clear: "清除", open: "打开", show: "查看", download: "下载", search: "搜索",
    confirm: "确认", back: "返回", refresh: "刷新", edit: "编辑", delete: "删除", create: "创建", loadMore: "显示更多", all: "全部",
    newer: "较新", older: "更早", select: "选择", selectAll: "选择本页全部", dismiss: "关闭提示",
    typeName: (name) => `输入 ${name} 以确认`,
  },
  find: { label: "查找或跳转", placeholder: "ID、流程、队列或页面", none: "没有找到", pages: "页面", results: "结果", run: "运行", flow: "流程", queue: "队列", job: "任务", hint: "回车打开，Esc 关闭" },
  keys: {
    title: "键盘", everywhere: "全局", then: "然后",
    help: "显示此帮助", search: "聚焦搜索框", find: "查找或跳转", goTo: (page) => `前往：${page}`, down: "下一行", up: "上一行",
    openRow: "打开该行", mark: "选择该行", back: "关闭或返回", pause: "暂停或恢复实时更新", theme: "切换主题", fold: "收起导航",
  },
  signIn: {
    title: "登录", text: "此服务器需要令牌。页面状态会保留。", token: "令牌", submit: "登录", stored: "只保存在此浏览器中。",
  },
  empty: { nothing: "暂无内容", noMatch: "没有匹配项", clear: "清除筛选", examples: "加载示例", loading: "加载中" },
  payload: {
    cut: (shown, all) => `已显示 ${shown}，共 ${all}。`, all: (size) => `加载全部（${size}）`, none: "无", download: "下载",
    folded: "自动换行", notJson: "不是有效的 JSON。",
  },
  list: { shown: (n) => `已显示 ${n} 条`, newRows: (n) => `${n} 条新记录`, selected: (n) => `已选 ${n} 项`, page: (n) => `第 ${n} 页` },
  theme: { system: "跟随系统", light: "浅色", dark: "深色" },
};

export const commonWords: Words<typeof en> = { en, zh };
