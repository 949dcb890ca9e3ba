// Words of the flows, of one flow and of the editor.
import type { Words } from "./language";

const en = {
  title: "Flows", none: "No flow yet", noneText: "A flow is a definition in JSON or YAML. Publish one, or load the examples.", newFlow: "New flow", filter: "Filter by name or label", 
  head: { name: "Name", version: "Version", runs: "Runs 24 h", failed: "Results 24 h", next: "Next start", labels: "Labels", updated: "Published" },
  loadExamples: "Load the examples", loaded: (n: number) => `${n} ${n === 1 ? "example" : "examples"} published`,
  start: "Start run", edit: "Edit", tabs: { graph: "Graph", versions: "Versions", runs: "Runs", schedules: "Schedules", nodes: "Durations", definition: "Definition" }, tabsLabel: "Parts of the flow",
  version: (n: number) => `version ${n}`, latest: "latest", versionField: "Version", direction: "Direction", lr: "Left to right", tb: "Top down",
  versions: { version: "Version", status: "Status", form: "Form", note: "Note", published: "Published", compare: "Compare", from: "From", to: "To", text: "Text", graph: "Graph", fields: "Fields", same: "The two versions are equal.", none: "Choose two versions to compare.", only: "There is one version. A second one can be compared with it.", before: "before", after: "after", more: "More changes than are shown.", views: "View of the difference", selectOld: (n: number) => `Compare from version ${n}`, selectNew: (n: number) => `Compare to version ${n}`, openEditor: "Open in the editor" },
  change: { added: "added", removed: "removed", changed: "changed" } as Record<string, string>,
  node: { node: "Node", ended: "Ended", failed: "Failed", p50: "p50", p95: "p95", max: "max", total: "Total", wait: "Wait p95", none: "No node has ended yet" },
  noRuns: "No run yet", noRunsText: "Start one here, from the command line, or by a schedule.", allRuns: "All runs of this flow", noSchedules: "No schedule starts this flow", newSchedule: "New schedule",
  description: "Description", created: "Created", labels: "Labels", keyHead: "Key", kind: "Kind", path: "Place",
  editor: {
    title: "Editor", newTitle: "New flow", name: "Name of the flow", text: "Definition", graph: "Graph", problems: (n: number) => `${n} ${n === 1 ? "problem" : "problems"}`, warnings: (n: number) => `${n} ${n === 1 ? "warning" : "warnings"}`, ok: "No problem", checking: "Checking",
    publish: "Publish", publishTitle: (flow: string) => `Publish ${flow}`, publishText: (n: number) => `It becomes version ${n}. Running runs keep their version.`, publishFirst: "It becomes version 1 of a new flow.", note: "Note", noteHint: "What changes, for the list of versions", published: (flow: string, n: number) => `${flow} version ${n} published`, hasWarnings: (n: number) => `${n} ${n === 1 ? "warning does" : "warnings do"} not prevent it.`,
    conflict: (base: number, latest: number) => `The draft began with version ${base}; meanwhile version ${latest} was published. Publishing replaces it.`,
    test: "Test run", testTitle: "Test run", testText: (flow: string) => `Publishes the draft as \`${flow}\` and starts one run of it. The flow itself stays as it is.`, params: "Params", testRun: "Run", testStarted: "Test run", closeTest: "Hide the test run",
    draftKept: "Draft kept in this browser", draftRestored: "The draft of this browser is open.", discard: "Discard the draft", discardTitle: "Discard the draft", discardText: "The text of the published version comes back.", saved: "saved",
    noGraph: "The graph appears when the definition has no error.", oldGraph: "The graph of the last text without errors.", line: (n: number) => `line ${n}`, asJson: "New as JSON", asYaml: "New as YAML", panes: "Parts of the editor", compare: "Compare with published", keys: "Editor", keyPublish: "Publish", keyTest: "Test run", atNode: (node: string) => `in ${node}`,
  },
};

const zh: typeof en = {
  title: "流程", none: "还没有流程", noneText: "流程是 JSON 或 YAML 定义。发布一个，或加载示例。", newFlow: "新建流程", filter: "按名称或标签筛选", 
  head: { name: "名称", version: "版本", runs: "24 小时运行", failed: "24 小时结果", next: "下次启动", labels: "标签", updated: "发布时间" },
  loadExamples: "加载示例", loaded: (n) => `已发布 ${n} 个示例`,
  start: "启动运行", edit: "编辑", tabs: { graph: "流程图", versions: "版本", runs: "运行", schedules: "定时", nodes: "耗时", definition: "定义" }, tabsLabel: "流程的各部分",
  version: (n) => `版本 ${n}`, latest: "最新", versionField: "版本", direction: "方向", lr: "从左到右", tb: "从上到下",
  versions: { version: "版本", status: "状态", form: "形式", note: "说明", published: "发布时间", compare: "比较", from: "从", to: "到", text: "文本", graph: "流程图", fields: "字段", same: "两个版本相同。", none: "选择两个版本进行比较。", only: "只有一个版本，发布第二个后可以比较。", before: "之前", after: "之后", more: "更改多于所显示的。", views: "差异视图", selectOld: (n) => `从版本 ${n} 比较`, selectNew: (n) => `比较到版本 ${n}`, openEditor: "在编辑器中打开" },
  change: { added: "增加", removed: "删除", changed: "更改" },
  node: { node: "节点", ended: "结束", failed: "失败", p50: "p50", p95: "p95", max: "最大", total: "合计", wait: "等待 p95", none: "还没有节点结束" },
  noRuns: "还没有运行", noRunsText: "在此、从命令行或由定时启动。", allRuns: "此流程的所有运行", noSchedules: "没有定时启动此流程", newSchedule: "新建定时",
  description: "描述", created: "创建", labels: "标签", keyHead: "键", kind: "类型", path: "位置",
  editor: {
    title: "编辑器", newTitle: "新建流程", name: "流程名称", text: "定义", graph: "流程图", problems: (n) => `${n} 个问题`, warnings: (n) => `${n} 个警告`, ok: "没有问题", checking: "检查中",
    publish: "发布", publishTitle: (flow) => `发布 ${flow}`, publishText: (n) => `将成为版本 ${n}。运行中的运行保持其版本。`, publishFirst: "将成为新流程的版本 1。", note: "说明", noteHint: "更改内容，显示在版本列表中", published: (flow, n) => `${flow} 版本 ${n} 已发布`, hasWarnings: (n) => `${n} 个警告不影响发布。`,
    conflict: (base, latest) => `草稿基于版本 ${base}，其间已发布版本 ${latest}。发布会取代它。`,
    test: "试运行", testTitle: "试运行", testText: (flow) => `将草稿发布为 \`${flow}\` 并启动一次运行，流程本身不变。`, params: "参数", testRun: "运行", testStarted: "试运行", closeTest: "隐藏试运行",
    draftKept: "草稿保存在此浏览器中", draftRestored: "已打开此浏览器中的草稿。", discard: "放弃草稿", discardTitle: "放弃草稿", discardText: "恢复已发布版本的文本。", saved: "已保存",
    noGraph: "定义没有错误时显示流程图。", oldGraph: "最近一次无错误文本的流程图。", line: (n) => `第 ${n} 行`, asJson: "新建 JSON", asYaml: "新建 YAML", panes: "编辑器的各部分", compare: "与已发布版本比较", keys: "编辑器", keyPublish: "发布", keyTest: "试运行", atNode: (node) => `位于 ${node}`,
  },
};

export const flowsWords: Words<typeof en> = { en, zh };
