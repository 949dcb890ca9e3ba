// Words of the queues, of one queue and of one job.
import type { Words } from "./language";

const en = {
  title: "Queues", none: "No queue yet", noneText: "A queue exists once a job names it. Workers claim its jobs.",
  head: { queue: "Queue", ready: "Ready", later: "Later", running: "Running", dead: "Dead", oldest: "Oldest", created: "In /s", done: "Out /s", wait50: "Wait p50", wait95: "Wait p95", limits: "Limits" },
  pause: "Pause", resume: "Resume", paused: (queue: string) => `${queue} is paused`, resumed: (queue: string) => `${queue} goes on`,
  pauseTitle: (queue: string) => `Pause ${queue}`, resumeTitle: (queue: string) => `Resume ${queue}`,
  pauseText: (ready: number, running: number) => `Workers get no new jobs: ${ready} ready jobs wait. ${running} running jobs go on.`,
  resumeText: (ready: number) => `${ready} ready jobs can be claimed at once.`,
  atOnce: (n: number) => `${n} at once`, perKey: (text: string) => `${text} per key`, fair: "keys take turns", noLimit: "none",
  edit: "Edit limits", limitsOf: (queue: string) => `Limits of ${queue}`, limitsText: "An empty field is no limit. Limits hold for all servers together.",
  concurrency: "Jobs at once", rate: "Claims", burst: "Burst", keyConcurrency: "Jobs at once per key", keyRate: "Claims per key", keyBurst: "Burst per key", fairField: "Keys take turns",
  per: "per", units: { "1000": "second", "60000": "minute", "3600000": "hour" } as Record<string, string>, saved: (queue: string) => `Limits of ${queue} changed`,
  push: "Enqueue", pushTitle: (queue: string) => `New job in ${queue}`, name: "Name", payload: "Payload", priority: "Priority", priorityHint: "higher first", retries: "Retries", dedup: "Deduplication key", created: (id: string) => `Job ${id} created`, queueField: "Queue",
  facts: { state: "State", open: "open", openJobs: "Open jobs", workedOff: "Work p50 / p95", waited: "Wait p50 / p95", lastHour: "Last hour", hour: (created: number, done: number, failed: number) => `${created} in, ${done} done, ${failed} failed` },
  charts: { range: "Range of the charts", depth: "Depth", throughput: "Jobs per second", wait: "Durations", jobsIn: "in", done: "done", failed: "failed", dead: "dead", depthLine: "open jobs", wait50: "wait p50", wait95: "wait p95", work95: "work p95" },
  tabs: { open: "Open", ready: "Ready", running: "Running", delayed: "Later", retrying: "Retrying", failed: "Failed", completed: "Completed", canceled: "Canceled" } as Record<string, string>, jobsLabel: "Jobs by state",
  job: { job: "Job", status: "Status", attempt: "Attempt", priority: "Priority", due: "Due", created: "Created", updated: "Changed", error: "Error", worker: "Worker", of: (n: number, max: number) => `${n} of ${max}` },
  
  detail: {
    cancel: "Cancel", retry: "Retry", retryNow: "Retry now", cancelTitle: (id: string) => `Cancel job ${id}`, retryTitle: (id: string) => `Retry job ${id}`,
    cancelText: "A waiting job ends at once. The worker of a running job has 30 seconds to stop.", retryText: "The delay ends, or the job opens again with all its attempts.",
    canceled: "Cancel requested", retried: "The job is open again", attempts: "Attempts", payload: "Payload", result: "Result", facts: "Job", ofRun: "It carries a call of this run: cancel or retry the run.", run: "Run", schedule: "Schedule", account: "Account", dedup: "Deduplication key", limitKey: "Limit key", timeout: "Timeout", backoff: "Backoff", discarded: "Discarded", toLetters: "Open the dead letters", started: "Started", ended: "Ended", took: "Took", worker: "Worker", next: "Next try", memo: "Memo",
  },
};

const zh: typeof en = {
  title: "队列", none: "还没有队列", noneText: "任务指定队列后，队列即存在，由执行器领取其中的任务。",
  head: { queue: "队列", ready: "就绪", later: "延后", running: "运行中", dead: "死信", oldest: "最久等待", created: "流入/秒", done: "流出/秒", wait50: "等待 p50", wait95: "等待 p95", limits: "限制" },
  pause: "暂停", resume: "恢复", paused: (queue) => `${queue} 已暂停`, resumed: (queue) => `${queue} 已恢复`,
  pauseTitle: (queue) => `暂停 ${queue}`, resumeTitle: (queue) => `恢复 ${queue}`,
  pauseText: (ready, running) => `执行器不再领取新任务：${ready} 个就绪任务等待，${running} 个运行中的任务继续。`,
  resumeText: (ready) => `${ready} 个就绪任务可立即领取。`,
  atOnce: (n) => `同时 ${n} 个`, perKey: (text) => `每个键 ${text}`, fair: "键轮流", noLimit: "无",
  edit: "编辑限制", limitsOf: (queue) => `${queue} 的限制`, limitsText: "留空表示不限制。限制对所有服务器共同生效。",
  concurrency: "同时运行的任务", rate: "领取", burst: "突发", keyConcurrency: "每个键同时运行", keyRate: "每个键的领取", keyBurst: "每个键的突发", fairField: "键轮流",
  per: "每", units: { "1000": "秒", "60000": "分钟", "3600000": "小时" }, saved: (queue) => `${queue} 的限制已更改`,
  push: "新建任务", pushTitle: (queue) => `在 ${queue} 中新建任务`, name: "名称", payload: "负载", priority: "优先级", priorityHint: "数字大者优先", retries: "重试次数", dedup: "去重键", created: (id) => `任务 ${id} 已创建`, queueField: "队列",
  facts: { state: "状态", open: "开放", openJobs: "未结束任务", workedOff: "执行 p50 / p95", waited: "等待 p50 / p95", lastHour: "最近一小时", hour: (created, done, failed) => `流入 ${created}，完成 ${done}，失败 ${failed}` },
  charts: { range: "图表范围", depth: "深度", throughput: "每秒任务数", wait: "耗时", jobsIn: "流入", done: "完成", failed: "失败", dead: "死信", depthLine: "未结束任务", wait50: "等待 p50", wait95: "等待 p95", work95: "执行 p95" },
  tabs: { open: "未结束", ready: "就绪", running: "运行中", delayed: "延后", retrying: "重试中", failed: "失败", completed: "已完成", canceled: "已取消" }, jobsLabel: "按状态查看任务",
  job: { job: "任务", status: "状态", attempt: "尝试", priority: "优先级", due: "到期", created: "创建", updated: "更改", error: "错误", worker: "执行器", of: (n, max) => `${n} / ${max}` },
  
  detail: {
    cancel: "取消任务", retry: "重试", retryNow: "立即重试", cancelTitle: (id) => `取消任务 ${id}`, retryTitle: (id) => `重试任务 ${id}`,
    cancelText: "等待中的任务立即结束；运行中任务的执行器有 30 秒时间停止。", retryText: "延迟结束，或任务重新打开并恢复全部尝试次数。",
    canceled: "已请求取消", retried: "任务已重新打开", attempts: "尝试", payload: "负载", result: "结果", facts: "任务", ofRun: "它承载此运行的一次调用：请取消或重试该运行。", run: "运行", schedule: "定时", account: "账户", dedup: "去重键", limitKey: "限制键", timeout: "超时", backoff: "退避", discarded: "已丢弃", toLetters: "打开死信", started: "开始", ended: "结束", took: "用时", worker: "执行器", next: "下次尝试", memo: "备忘",
  },
};

export const queuesWords: Words<typeof en> = { en, zh };
