// Lists that read again when their topic changes.
import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useTopic } from "./live";

/** Reads the queries under `key` again on every event of `topic`. The first `hello` closes the gap between the first
 * answer and the subscription. */
export function useRefetch(topic: string, key: QueryKey): void {
  const client = useQueryClient();
  useTopic(topic, () => void client.invalidateQueries({ queryKey: key }));
}
