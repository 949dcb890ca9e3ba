// Words of the form that starts a run.
import type { Words } from "./language";

const en = {
  title: "Start run", flow: "Flow", flowHint: "Name or id", version: "Version", latest: "latest published", params: "Parameters, JSON", form: "Form", json: "JSON", reads: "The flow reads", required: "required", default: (value: string) => `default ${value}`,
  account: "Account", accountHint: "pays for the calls", priority: "Priority", byDefinition: "as defined", request: "Request id", requestHint: "starting again with it starts nothing", labels: "Labels", labelsHint: "key=value, separated by spaces", budget: "Budget, in minor units", manual: "Advance by hand, one step at a time", short: "When the balance is short", fail: "the node fails", wait: "the run waits", start: "Start run", like: (id: string) => `Filled in from run ${id}.`,
  noFlow: "Choose a flow.", noFlows: "No flow is published yet.", badLabel: "Write labels as key=value.", badNumber: "Write a whole number.", more: "More settings", mode: "Nodes", modes: { all: "all", specified_starts: "from the given nodes on", isolated_nodes: "only the given nodes" } as Record<string, string>, nodes: "Node ids, separated by spaces", again: "The request was known: this is the run that it started.",
  types: { string: "text", number: "number", boolean: "true or false", url: "address", object: "JSON object", array: "JSON array" } as Record<string, string>, badValue: (type: string) => `Write a ${type}.`, missing: "A value is required.",
};

const zh: typeof en = {
  title: "启动运行", flow: "流程", flowHint: "名称或 ID", version: "版本", latest: "最新发布的版本", params: "参数（JSON）", form: "表单", json: "JSON", reads: "流程读取", required: "必填", default: (value) => `默认 ${value}`,
  account: "账户", accountHint: "为调用付费", priority: "优先级", byDefinition: "按定义", request: "请求 ID", requestHint: "以相同 ID 再次启动不会重复", labels: "标签", labelsHint: "key=value，以空格分隔", budget: "预算（最小货币单位）", manual: "由人工逐步推进", short: "余额不足时", fail: "节点失败", wait: "运行等待", start: "启动运行", like: (id) => `已按运行 ${id} 填写。`,
  noFlow: "请选择流程。", noFlows: "还没有发布流程。", badLabel: "标签请写成 key=value。", badNumber: "请输入整数。", more: "更多设置", mode: "节点", modes: { all: "全部", specified_starts: "从指定节点开始", isolated_nodes: "仅指定节点" }, nodes: "节点 ID，以空格分隔", again: "该请求已存在：这是它启动的运行。",
  types: { string: "文本", number: "数字", boolean: "true 或 false", url: "网址", object: "JSON 对象", array: "JSON 数组" }, badValue: (type) => `请输入${type}。`, missing: "必须填写。",
};

export const startWords: Words<typeof en> = { en, zh };
