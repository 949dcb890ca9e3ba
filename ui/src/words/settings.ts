// Words of the settings.
import type { Words } from "./language";

const en = {
  title: "Settings", viewer: "This browser", theme: "Theme", language: "Language", zone: "Times", local: "Local time", utc: "UTC", name: "Your name", nameText: "The audit log records it with every change; approvals compare it with their assignees.", save: "Save", saved: "Saved", languages: { en: "English", zh: "中文" },
  token: "Access token", tokenText: "Sent with every request. A server that needs none ignores it.", forget: "Forget", tokenSet: "A token is set.", noToken: "No token is set.",
  about: "This server", version: "Version", server: "Server", project: "Project", up: "Running for", servers: "Servers on this store", started: "Started", heartbeat: "Heartbeat", retention: "Ended runs are kept", forEver: "for ever", silence: "A worker may be silent", ready: "Ready", notReady: "Not ready", troubles: "Troubles", api: "API reference", guides: "Guides", keys: "Keyboard help: press ?", process: "Process", memory: "Memory", tasks: "Tasks", health: "State",
};

const zh: typeof en = {
  title: "设置", viewer: "此浏览器", theme: "主题", language: "语言", zone: "时间", local: "本地时间", utc: "UTC", name: "你的名字", nameText: "审计日志随每项更改记录它；审批会将它与指定者比较。", save: "保存", saved: "已保存", languages: { en: "English", zh: "中文" },
  token: "访问令牌", tokenText: "随每个请求发送。不需要令牌的服务器会忽略它。", forget: "清除", tokenSet: "已设置令牌。", noToken: "未设置令牌。",
  about: "此服务器", version: "版本", server: "服务器", project: "项目", up: "已运行", servers: "共用此存储的服务器", started: "启动", heartbeat: "心跳", retention: "结束的运行保留", forEver: "永久", silence: "执行器可静默", ready: "就绪", notReady: "未就绪", troubles: "问题", api: "API 参考", guides: "指南", keys: "键盘帮助：按 ?", process: "进程", memory: "内存", tasks: "任务数", health: "状态",
};

export const settingsWords: Words<typeof en> = { en, zh };
