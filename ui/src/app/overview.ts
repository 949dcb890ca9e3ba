// The overview: the figures behind the badges of the navigation and the first page.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { request } from "../api/client";
import type { About, Overview } from "../api/console";
import { useTopic } from "../live/live";

const OVERVIEW = ["overview"];

/** The figures of the server; the event stream replaces them every five seconds. */
export function useOverview() {
  const client = useQueryClient();
  useTopic("overview", ({ type, data }) => {
    if (type === "overview") client.setQueryData(OVERVIEW, data as Overview);
    else void client.invalidateQueries({ queryKey: OVERVIEW });
  });
  const overview = useQuery({ queryKey: OVERVIEW, queryFn: ({ signal }) => request<Overview>("GET", "/api/v1/overview", { signal }) });
  const about = useQuery({ queryKey: ["about"], queryFn: ({ signal }) => request<About>("GET", "/api/v1/about", { signal }), staleTime: 300_000 });
  return { ...overview, about: about.data };
}
