import { expect, test } from "vitest";
import { SseParser } from "./sse";

test("events are read wherever the stream is cut", () => {
  const text = 'id: 7\nevent: patch\ndata: {"a":1}\n\n: ping\n\nevent: runs\r\ndata: x\r\ndata: y\r\n\r\n';
  for (let at = 0; at <= text.length; at += 1) {
    const parser = new SseParser();
    const [first, second] = [parser.push(text.slice(0, at)), parser.push(text.slice(at))];
    const messages = [...first.messages, ...second.messages];
    expect(messages, `cut at ${at}`).toEqual([{ type: "patch", data: '{"a":1}', id: "7" }, { type: "runs", data: "x\ny", id: "7" }]);
    expect(first.isBeat || second.isBeat).toBe(true);
  }
});

test("an event without data is none", () => {
  expect(new SseParser().push("event: hello\n\n").messages).toEqual([]);
});
