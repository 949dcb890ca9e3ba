// Words of the approvals inbox.
import type { Words } from "./language";

const en = {
  title: "Approvals", none: "No approval is open", noneText: "A flow asks here when it reaches an approval node.", noneMine: "Nothing waits for you", noneMineText: (n: number) => `${n} wait for other people.`, showAll: "Show all",
  noneDecided: "No decision yet", noneDecidedText: "Decisions of all people stand here, newest first.",
  mine: "Mine", all: "All", decided: "Decided", tabs: "Approvals", move: "move", approveKey: "approve", rejectKey: "reject",
  left: (time: string) => `${time} left`, noLimit: "no limit", asked: (ago: string) => `asked ${ago}`, everyone: "everyone", you: "you", list: "Open approvals",
  node: "node", may: "May decide", askedAt: "Asked", costSoFar: "Cost so far", account: "Account", version: "Flow",
  timeoutNote: (time: string) => `No decision in ${time} takes the timeout edge; without one the run fails.`, context: "Context", noContext: "The flow gives no context.", form: "Form", path: "Graph",
  comment: "Comment, kept with the decision", approve: "Approve", reject: "Reject", other: "Other decision…", otherTitle: (node: string) => `Decide ${node}`, otherHint: 'JSON: "later" takes the edge of that action; an object is the output of the node.', decision: "Decision", send: "Send",
  approveGoes: (node: string) => `Approve continues at \`${node}\`.`, rejectGoes: (node: string) => `Reject goes to \`${node}\`.`, ends: "the end",
  approveTitle: (node: string) => `Approve ${node}`, rejectTitle: (node: string) => `Reject ${node}`,
  approved: (run: string) => `Approved, run ${run} goes on`, rejected: (run: string) => `Rejected, run ${run} goes on`, sent: (run: string) => `Decided, run ${run} goes on`,
  gone: "This approval is no longer open.", name: "Your name", nameText: "Approvals may be assigned to people. The server compares this name with the assignees and keeps it with the decision.", nameSave: "Save", asPerson: (name: string) => `You decide as ${name}.`, change: "Change",
  head: { at: "Decided", who: "Who", run: "Run", node: "Node", decision: "Decision", comment: "Comment", result: "Result" }, openRun: "Open the run",
};

const zh: typeof en = {
  title: "审批", none: "没有待审批项", noneText: "流程到达审批节点时会出现在这里。", noneMine: "没有需要你处理的项", noneMineText: (n) => `另有 ${n} 项等待其他人。`, showAll: "显示全部",
  noneDecided: "还没有决定", noneDecidedText: "所有人的决定显示在此，最新在前。",
  mine: "我的", all: "全部", decided: "已决定", tabs: "审批", move: "移动", approveKey: "批准", rejectKey: "拒绝",
  left: (time) => `剩余 ${time}`, noLimit: "不限时", asked: (ago) => `${ago}提出`, everyone: "所有人", you: "你", list: "待审批项",
  node: "节点", may: "可决定者", askedAt: "提出时间", costSoFar: "当前费用", account: "账户", version: "流程",
  timeoutNote: (time) => `${time} 内没有决定则走 timeout 边；没有该边则运行失败。`, context: "上下文", noContext: "流程没有提供上下文。", form: "表单", path: "流程图",
  comment: "备注（随决定保存）", approve: "批准", reject: "拒绝", other: "其他决定…", otherTitle: (node) => `决定 ${node}`, otherHint: 'JSON："later" 走该动作的边；对象作为节点输出。', decision: "决定", send: "发送",
  approveGoes: (node) => `批准后继续到 \`${node}\`。`, rejectGoes: (node) => `拒绝后转到 \`${node}\`。`, ends: "结束",
  approveTitle: (node) => `批准 ${node}`, rejectTitle: (node) => `拒绝 ${node}`,
  approved: (run) => `已批准，运行 ${run} 继续`, rejected: (run) => `已拒绝，运行 ${run} 继续`, sent: (run) => `已决定，运行 ${run} 继续`,
  gone: "此审批已不再开放。", name: "你的名字", nameText: "审批可以指定给某些人。服务器会将此名字与指定者比较，并随决定保存。", nameSave: "保存", asPerson: (name) => `你以 ${name} 的身份决定。`, change: "更改",
  head: { at: "决定时间", who: "决定人", run: "运行", node: "节点", decision: "决定", comment: "备注", result: "结果" }, openRun: "打开运行",
};

export const approvalsWords: Words<typeof en> = { en, zh };
