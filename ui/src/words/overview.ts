// Words of the overview.
import type { Words } from "./language";

const en = {
  title: "Overview", range: "Time range",
  tiles: { running: "Running", queued: "Queued", waiting: "Waiting", failed: "Failed, 24 h", deadLetters: "Dead letters", workers: "Workers", online: "online" },
  small: { runs: "runs", jobs: "jobs and calls", waiting: "approval, signal or timer", approvals: (n: string) => `${n} for approval`, noWorkers: "none is registered", stale: (n: string) => `${n} stale`, draining: (n: string) => `${n} draining`, allLive: "all live", noDead: "none waits", review: "wait for a person" },
  charts: { runs: "Runs ended", completed: "completed", failed: "failed", canceled: "canceled", wait: "Queue wait", duration: "Run duration", p50: "p50", p95: "p95" },
  attention: { title: "Needs attention", none: "Nothing needs attention.", kinds: { no_worker: "Show workers", missed_schedule: "Open schedules", dead_letters: "Review letters", lease_expired: "Show workers", low_balance: "Open ledger", queue_paused: "Open queue", trouble: "Open settings" } as Record<string, string> },
  attentionText: {
    no_worker: (subject: string, n: string) => `No live worker serves \`${subject}\`; ${n} ${n === "1" ? "call waits" : "calls wait"}`,
    missed_schedule: (subject: string) => `Schedule \`${subject}\` missed a firing`,
    dead_letters: (subject: string, n: string) => `Dead letters of \`${subject}\`: ${n}`,
    lease_expired: (_: string, n: string) => `${n} ${n === "1" ? "lease" : "leases"} expired in the last hour`,
    low_balance: (subject: string) => `Account \`${subject}\` is low`,
    queue_paused: (subject: string) => `Queue \`${subject}\` is paused`,
  } as Record<string, (subject: string, n: string) => string>,
  services: { title: "Services", demand: "queued", running: "running", workers: "workers", capacity: "capacity", service: "Service", none: "No service is in use.", all: "All workers" },
  first: {
    title: "First steps", text: "Four steps to the first run.", worker: "Start a worker", workerText: "A worker executes the calls of flows. The standard worker comes with the binary.", examples: "Load the example flows", examplesText: "They show branches, fans, waits, approvals and retries.", load: "Load the examples", loaded: (n: number) => `${n} ${n === 1 ? "flow" : "flows"} published`, run: "Run one", runText: "Start the flow `graph/approval`.", start: "Start run", open: "Open the run", openText: "Its page shows the graph, the timeline and the state of every step.", openRuns: "Open the list of runs", done: "done",
  },
};

const zh: typeof en = {
  title: "概览", range: "时间范围",
  tiles: { running: "运行中", queued: "排队中", waiting: "等待中", failed: "24 小时失败", deadLetters: "死信", workers: "执行器", online: "在线" },
  small: { runs: "个运行", jobs: "任务和调用", waiting: "审批、信号或定时器", approvals: (n) => `${n} 个待审批`, noWorkers: "没有注册的执行器", stale: (n) => `${n} 个失联`, draining: (n) => `${n} 个排空中`, allLive: "全部在线", noDead: "没有等待处理的", review: "等待人工处理" },
  charts: { runs: "结束的运行", completed: "完成", failed: "失败", canceled: "取消", wait: "队列等待", duration: "运行用时", p50: "p50", p95: "p95" },
  attention: { title: "需要关注", none: "没有需要关注的事项。", kinds: { no_worker: "查看执行器", missed_schedule: "打开定时", dead_letters: "查看死信", lease_expired: "查看执行器", low_balance: "打开账本", queue_paused: "打开队列", trouble: "打开设置" } },
  attentionText: {
    no_worker: (subject, n) => `没有在线执行器提供 \`${subject}\`，${n} 个调用在等待`,
    missed_schedule: (subject) => `定时 \`${subject}\` 错过了一次触发`,
    dead_letters: (subject, n) => `\`${subject}\` 的死信：${n}`,
    lease_expired: (_, n) => `最近一小时有 ${n} 个租约过期`,
    low_balance: (subject) => `账户 \`${subject}\` 余额不足`,
    queue_paused: (subject) => `队列 \`${subject}\` 已暂停`,
  },
  services: { title: "服务", demand: "排队", running: "运行", workers: "执行器", capacity: "容量", service: "服务", none: "没有使用中的服务。", all: "全部执行器" },
  first: {
    title: "开始使用", text: "四步完成第一次运行。", worker: "启动执行器", workerText: "执行器执行流程中的调用，二进制文件自带标准执行器。", examples: "加载示例流程", examplesText: "示例展示分支、并行、等待、审批和重试。", load: "加载示例", loaded: (n) => `已发布 ${n} 个流程`, run: "运行一个", runText: "启动流程 `graph/approval`。", start: "启动运行", open: "打开运行", openText: "页面显示流程图、时间线和每一步的状态。", openRuns: "打开运行列表", done: "完成",
  },
};

export const overviewWords: Words<typeof en> = { en, zh };
