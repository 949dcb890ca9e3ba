// Words of the drawing of a flow.
import type { Words } from "./language";

const en = {
  label: (name: string) => `Graph of ${name}`,
  nodes: (n: number) => `${n} ${n === 1 ? "node" : "nodes"}`,
  done: (n: number) => `${n} done`, active: (n: number) => `${n} active`, todo: (n: number) => `${n} to do`, skipped: (n: number) => `${n} skipped`, failed: (n: number) => `${n} failed`,
  of: (done: number, total: number) => `${done} of ${total}`,
  ofDone: (done: number, total: number) => `${done} of ${total} done`,
  onlyProblems: "Only problems", leftRight: "Left to right", topDown: "Top down", zoomIn: "Zoom in", zoomOut: "Zoom out", fit: "Fit", fullScreen: "Full screen", find: "Find node",
  nextIn: (left: string) => `next in ${left}`,
  fold: "Fold boxes", unfold: (n: number) => `Show ${n} ${n === 1 ? "node" : "nodes"} in boxes`,
  notDrawn: (n: number) => `${n} ${n === 1 ? "node is" : "nodes are"} not drawn`, tooLarge: "The flow is too large to draw whole.", 
  walk: "Walk along the edges", start: "To the first node", status: "status",
  keys: "Graph",
};

const zh: typeof en = {
  label: (name) => `${name} 的流程图`,
  nodes: (n) => `${n} 个节点`,
  done: (n) => `${n} 已完成`, active: (n) => `${n} 进行中`, todo: (n) => `${n} 未开始`, skipped: (n) => `${n} 已跳过`, failed: (n) => `${n} 失败`,
  of: (done, total) => `${done} / ${total}`,
  ofDone: (done, total) => `已完成 ${done} / ${total}`,
  onlyProblems: "只看问题", leftRight: "从左到右", topDown: "从上到下", zoomIn: "放大", zoomOut: "缩小", fit: "适应窗口", fullScreen: "全屏", find: "查找节点",
  nextIn: (left) => `${left} 后重试`,
  fold: "折叠分组", unfold: (n) => `显示分组内的 ${n} 个节点`,
  notDrawn: (n) => `${n} 个节点未绘制`, tooLarge: "流程过大，无法完整绘制。", 
  walk: "沿边移动", start: "到第一个节点", status: "状态",
  keys: "流程图",
};

export const graphWords: Words<typeof en> = { en, zh };
