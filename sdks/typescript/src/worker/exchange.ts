/** The one place where ends of jobs and requests for jobs meet the server. */
import type { ClaimRequest, ClaimResponse, FinishVerdict } from "../openapi.ts";
import type { Transport } from "../transport.ts";

/** The answers to an exchange; each part fails for itself, and is absent if it was not asked for. */
export interface ExchangeAnswer {
  finished?: PromiseSettledResult<FinishVerdict[]>;
  claimed?: PromiseSettledResult<ClaimResponse>;
}

/**
 * Sends ends of jobs and asks for jobs. Today these are two requests at the same time; a server with one route for
 * both needs another body of this function only.
 */
export async function exchange(
  transport: Transport, ends: readonly string[], claim: ClaimRequest | undefined, signal: AbortSignal,
): Promise<ExchangeAnswer> {
  const [finished, claimed] = await Promise.all([
    ends.length === 0 ? undefined : settled(finish(transport, ends)),
    claim === undefined ? undefined : settled(requestJobs(transport, claim, signal)),
  ]);
  return { ...(finished && { finished }), ...(claimed && { claimed }) };
}

async function finish(transport: Transport, ends: readonly string[]): Promise<FinishVerdict[]> {
  const answer = await transport.call("POST /api/v1/jobs/finish", {
    bodyText: `{"results":[${ends.join(",")}]}`,
  } as Parameters<typeof transport.call<"POST /api/v1/jobs/finish">>[1]);
  return answer.results;
}

function requestJobs(transport: Transport, claim: ClaimRequest, signal: AbortSignal): Promise<ClaimResponse> {
  return transport.call("POST /api/v1/jobs/claim", { body: claim, waitMs: claim.wait_ms ?? 0, signal });
}

async function settled<T>(promise: Promise<T>): Promise<PromiseSettledResult<T>> {
  const [result] = await Promise.allSettled([promise]);
  return result;
}
