// Words of the schedules.
import type { Words } from "./language";

const en = {
  title: "Schedules", none: "No schedule yet", noneText: "A schedule starts a job, or a run of a flow, at the times of a cron expression.", create: "New schedule", edit: "Edit",
  head: { name: "Name", starts: "Starts", when: "When", next: "Next", last: "Last", overlap: "Overlap", state: "State" },
  filter: "Filter by name, flow or job",
  latest: "latest", job: "job", in: "in", never: "never",
  cron: {
    everyMinute: "every minute", everyMinutes: (n: string) => `every ${n} minutes`, everySeconds: (n: string) => `every ${n} seconds`, hourly: (minute: string) => `every hour at :${minute}`,
    daily: (time: string) => `every day ${time}`, weekdays: (time: string) => `weekdays ${time}`, weekly: (day: string, time: string) => `${day} ${time}`, monthly: (day: string, time: string) => `day ${day} of each month ${time}`,
    days: ["Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays"],
  },
  trigger: "Run now", triggerTitle: (name: string) => `Run ${name} now`, triggerText: "It starts at once, even while an earlier one runs or the schedule is off. The next times stay.", triggered: "Started",
  disable: "Turn off", enable: "Turn on", disableTitle: (name: string) => `Turn ${name} off`, enableTitle: (name: string) => `Turn ${name} on`, disableText: "No further time fires. Running jobs and runs go on.", enableText: "The next time fires. Times while it was off are not made up for.", disabled: (name: string) => `${name} is off`, enabled: (name: string) => `${name} is on`,
  delete: "Delete", deleteTitle: (name: string) => `Delete ${name}`, deleteText: "Its running jobs and runs go on.", deleted: (name: string) => `${name} deleted`,
  form: {
    createTitle: "New schedule", editTitle: (name: string) => `Edit ${name}`, name: "Name", target: "Starts", flow: "Run of a flow", job: "Job", flowName: "Flow", params: "Params", queue: "Queue", jobName: "Job name", payload: "Payload", version: "Version", versionHint: "empty: the newest at that time",
    cron: "Cron expression", cronHint: "minute hour day month weekday; with seconds first: six fields", zone: "Time zone", overlap: "While one still runs", catchup: "Missed times", dst: "At a clock change", window: "Not older than", windowText: (length: string) => `not older than ${length}`, account: "Account",
    overlaps: { skip: "drop the new one", queue: "wait for its end", cancel: "cancel the running one", allow: "start both" } as Record<string, string>,
    catchups: { none: "drop", last: "fire the latest", all: "fire all" } as Record<string, string>, dsts: { shift: "shift: after the gap, once", skip: "skip", twice: "twice" } as Record<string, string>,
    submit: "Create", save: "Save", created: (name: string) => `${name} created`, saved: (name: string) => `${name} changed`, hours: "hours",
  },
  next: { title: "Next ten times", own: "In its zone", viewer: "Here", utc: "UTC", inTime: "In", off: "The schedule is off: these times would fire.", never: "No further time", change: "clock change", preview: "Enter a cron expression: its next ten times stand here." },
  detail: { running: "Running now", waiting: "Waiting times", lastRun: "Last started", lastError: "Last failure", fired: "Times", firedText: (fired: number, passed: number) => `${fired} fired, ${passed} passed without a start`, runs: "Started runs", jobs: "Started jobs", zone: "Time zone", noneStarted: "Nothing was started yet", created: "Created", byHand: "by hand", definition: "Definition" },
};

const zh: typeof en = {
  title: "定时", none: "还没有定时", noneText: "定时按 cron 表达式启动任务或流程的运行。", create: "新建定时", edit: "编辑",
  head: { name: "名称", starts: "启动", when: "时间", next: "下次", last: "上次", overlap: "重叠", state: "状态" },
  filter: "按名称、流程或任务筛选",
  latest: "最新", job: "任务", in: "于", never: "从未",
  cron: {
    everyMinute: "每分钟", everyMinutes: (n) => `每 ${n} 分钟`, everySeconds: (n) => `每 ${n} 秒`, hourly: (minute) => `每小时第 ${minute} 分`,
    daily: (time) => `每天 ${time}`, weekdays: (time) => `工作日 ${time}`, weekly: (day, time) => `${day} ${time}`, monthly: (day, time) => `每月 ${day} 日 ${time}`,
    days: ["周日", "周一", "周二", "周三", "周四", "周五", "周六"],
  },
  trigger: "立即运行", triggerTitle: (name) => `立即运行 ${name}`, triggerText: "立即启动，即使上一次仍在运行或定时已关闭。后续时间不变。", triggered: "已启动",
  disable: "关闭", enable: "开启", disableTitle: (name) => `关闭 ${name}`, enableTitle: (name) => `开启 ${name}`, disableText: "后续时间不再触发，运行中的任务和运行继续。", enableText: "下一个时间将触发，关闭期间的时间不补。", disabled: (name) => `${name} 已关闭`, enabled: (name) => `${name} 已开启`,
  delete: "删除", deleteTitle: (name) => `删除 ${name}`, deleteText: "运行中的任务和运行继续。", deleted: (name) => `${name} 已删除`,
  form: {
    createTitle: "新建定时", editTitle: (name) => `编辑 ${name}`, name: "名称", target: "启动", flow: "流程的运行", job: "任务", flowName: "流程", params: "参数", queue: "队列", jobName: "任务名称", payload: "负载", version: "版本", versionHint: "留空：届时的最新版本",
    cron: "Cron 表达式", cronHint: "分 时 日 月 周；六个字段时秒在最前", zone: "时区", overlap: "上一次仍在运行时", catchup: "错过的时间", dst: "夏令时切换时", window: "不早于", windowText: (length) => `不早于 ${length}`, account: "账户",
    overlaps: { skip: "放弃新的", queue: "排队", cancel: "取消运行中的", allow: "同时启动" }, catchups: { none: "放弃", last: "补最近一次", all: "全部补上" }, dsts: { shift: "顺延：间隙之后，仅一次", skip: "跳过", twice: "两次" },
    submit: "创建", save: "保存", created: (name) => `${name} 已创建`, saved: (name) => `${name} 已更改`, hours: "小时",
  },
  next: { title: "接下来十次", own: "定时的时区", viewer: "本地", utc: "UTC", inTime: "还有", off: "定时已关闭：以下时间本应触发。", never: "没有后续时间", change: "时钟变化", preview: "输入 cron 表达式，此处显示接下来的十次时间。" },
  detail: { running: "正在运行", waiting: "等待的时间", lastRun: "上次启动", lastError: "上次失败", fired: "次数", firedText: (fired, passed) => `触发 ${fired} 次，未启动 ${passed} 次`, runs: "已启动的运行", jobs: "已启动的任务", zone: "时区", noneStarted: "尚未启动任何内容", created: "创建", byHand: "手动", definition: "定义" },
};

export const schedulesWords: Words<typeof en> = { en, zh };
