import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { ApiError } from "../api/client";
import { Boundary, ErrorPanel } from "./Errors";
import { tokens } from "./json";
import { Marked } from "./Marked";
import { StatusPill } from "./Status";
import { lookOf } from "./status";

afterEach(cleanup);

test("an unknown status is a grey question mark with its raw name", () => {
  render(<StatusPill status="compensating" />);
  expect(screen.getByText("compensating")).toBeTruthy();
  expect(lookOf("compensating")).toEqual({ family: "idle", icon: "unknown" });
  expect(lookOf("constructor")).toEqual({ family: "idle", icon: "unknown" });
});

test("an error shows code, text, request id, places and a retry", () => {
  const retry = vi.fn();
  render(<ErrorPanel error={new ApiError(400, "bad_query", "wrong", "req_7f3c", [{ path: "?query:7", reason: "no `field`", hint: "say status" }], 3)} onRetry={retry} />);
  for (const text of ["bad_query", "wrong", "?query:7", "field"]) expect(screen.getByText(text)).toBeTruthy();
  expect(document.body.textContent).toContain("req_7f3c");
  expect(document.body.textContent).toContain("say status");
  expect(document.body.textContent).toContain("3 s");
  fireEvent.click(screen.getByText("Retry"));
  expect(retry).toHaveBeenCalledOnce();
});

test("a failing panel fails alone, and can be tried again", () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  let fails = true;
  const Panel = () => { if (fails) throw new Error("broken panel"); return <p>works</p>; };
  render(<><Boundary><Panel /></Boundary><p>neighbour</p></>);
  expect(screen.getByText("neighbour")).toBeTruthy();
  expect(screen.getByText("broken panel")).toBeTruthy();
  fails = false;
  fireEvent.click(screen.getByText("Retry"));
  expect(screen.getByText("works")).toBeTruthy();
});

test("markup in a sentence stays text", () => {
  const { container } = render(<Marked text={"`a` <img src=x onerror=alert(1)> `b"} />);
  expect(container.querySelector("img")).toBeNull();
  expect(container.querySelectorAll("code").length).toBe(2);
  expect(container.textContent).toBe("a <img src=x onerror=alert(1)> b");
});

test("JSON tokens keep the text and know keys from texts", () => {
  const text = '{\n  "a": "b: c",\n  "n": -1.5e3,\n  "t": true,\n  "z": null\n}';
  const found = tokens(text);
  expect(found.map((one) => one.text).join("")).toBe(text);
  expect(found.filter((one) => one.kind === "k").map((one) => one.text)).toEqual(['"a"', '"n"', '"t"', '"z"']);
  expect(found.filter((one) => one.kind === "n").map((one) => one.text)).toEqual(["-1.5e3", "true"]);
  expect(tokens("x".repeat(100_000)).length).toBe(1);
});
