// Words of the workers.
import type { Words } from "./language";

const en = {
  title: "Workers", none: "No worker yet", noneText: "A worker asks for work (pull) or registers an address that the server calls (push).",
  demand: "Demand and supply", demandNote: "by service: why is nothing moving?", noServices: "No service has waiting calls or live workers.",
  legend: { queued: "left: queued, coloured by verdict", busy: "busy slots", free: "outline: free" },
  head: { service: "Service", queued: "Queued", demand: "demand (log)", supply: "supply", busy: "Busy", verdict: "Verdict", worker: "Worker", state: "State", type: "Type", services: "Services and queues", load: "Load", heartbeat: "Heartbeat", jobs: "Jobs now" },
  busyOf: (running: number, capacity: number) => `${running} of ${capacity}`, noLimit: "no limit",
  verdict: {
    no_worker: "No live worker", short: (queued: number) => `Short: ${queued} ${queued === 1 ? "waits" : "wait"} for a slot`, keeps_up: "Keeps up", idle: (free: number) => `Idle: ${free} ${free === 1 ? "slot" : "slots"} free`, idleOpen: "Idle", none: "No live worker, nothing waits",
  },
  type: { http: "push", pull: "pull" } as Record<string, string>,
  drain: "Drain", undrain: "Resume", drainTitle: (worker: string) => `Drain ${worker}`, undrainTitle: (worker: string) => `Resume ${worker}`,
  drainText: (n: number) => `The worker gets nothing new. ${n === 1 ? "Its job ends" : `Its ${n} jobs end`}, then it stops.`, undrainText: "The worker gets new jobs again.", drained: (worker: string) => `${worker} drains`, undrained: (worker: string) => `${worker} goes on`,
  all: "All services", more: (n: number) => `${n} more`, showTasks: "Show the jobs of this worker", idle: "This worker holds no job of a queue.", job: "Job", since: "Since", attempt: "Attempt", queue: "Queue", filter: "Filter by name or service",
};

const zh: typeof en = {
  title: "执行器", none: "还没有执行器", noneText: "执行器主动领取任务（拉取），或注册地址由服务器调用（推送）。",
  demand: "需求与供给", demandNote: "按服务：为什么没有进展？", noServices: "没有等待的调用，也没有在线执行器的服务。",
  legend: { queued: "左：排队，颜色表示结论", busy: "占用槽位", free: "轮廓：空闲" },
  head: { service: "服务", queued: "排队", demand: "需求（对数）", supply: "供给", busy: "占用", verdict: "结论", worker: "执行器", state: "状态", type: "类型", services: "服务与队列", load: "负载", heartbeat: "心跳", jobs: "当前任务" },
  busyOf: (running, capacity) => `${running} / ${capacity}`, noLimit: "不限",
  verdict: { no_worker: "没有在线执行器", short: (queued) => `不足：${queued} 个等待槽位`, keeps_up: "跟得上", idle: (free) => `空闲：${free} 个槽位`, idleOpen: "空闲", none: "没有在线执行器，也无等待" },
  type: { http: "推送", pull: "拉取" },
  drain: "排空", undrain: "恢复", drainTitle: (worker) => `排空 ${worker}`, undrainTitle: (worker) => `恢复 ${worker}`,
  drainText: (n) => `该执行器不再获得新任务。它的 ${n} 个任务结束后停止。`, undrainText: "该执行器重新获得新任务。", drained: (worker) => `${worker} 正在排空`, undrained: (worker) => `${worker} 已恢复`,
  all: "全部服务", more: (n) => `另有 ${n} 个`, showTasks: "显示该执行器的任务", idle: "该执行器没有持有队列任务。", job: "任务", since: "开始", attempt: "尝试", queue: "队列", filter: "按名称或服务筛选",
};

export const workersWords: Words<typeof en> = { en, zh };
