// Validation while a person types: the server checks the text after each pause and answers all problems with the graph.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { request } from "../../api/client";
import type { FlowGraph } from "../../api/console";
import { type EditorProblem, type EditorValidation, withLine } from "./problems";

const PAUSE_MS = 250;

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

export function useValidation(text: string) {
  const asked = useSettled(text);
  const answer = useQuery({
    queryKey: ["validate", asked], gcTime: 30_000, staleTime: Number.POSITIVE_INFINITY, placeholderData: keepPreviousData,
    // JSON is YAML too: as `yaml` the text keeps its lines, which the answer names.
    queryFn: async ({ signal }) => {
      const { problems, ...rest } = await request<EditorValidation>("POST", "/api/v1/flows/validate", { body: { yaml: asked }, signal });
      return { ...rest, problems: problems.map(withLine) };
    },
  });
  const last = useRef<FlowGraph>(undefined);
  if (answer.data?.graph) last.current = answer.data.graph;
  const none = useRef<EditorProblem[]>([]);
  const isFresh = asked === text && !answer.isPlaceholderData && answer.data !== undefined;
  return {
    problems: answer.data?.problems ?? none.current,
    /** The graph of the newest text without errors. */
    graph: last.current,
    isKnown: isFresh,
    isOk: isFresh && answer.data?.ok === true,
    error: answer.error,
    retry: () => void answer.refetch(),
  };
}
