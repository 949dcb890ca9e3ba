/** Signatures of pushed calls by the rules of Standard Webhooks: HMAC-SHA-256 over id, time and body. */
import { createHmac, timingSafeEqual } from "node:crypto";

/** How far the time of a signature may be away. */
const TOLERANCE_S = 300;
const PREFIX = "whsec_";
/** Bytes of a secret. */
const [KEY_MIN, KEY_MAX] = [24, 64];

/** The headers of a signature. */
export interface SignatureHeaders {
  id: string | null;
  timestamp: string | null;
  /** `v1,<base64>`, several with blanks between them. */
  signature: string | null;
}

function keyOf(secret: string): Buffer {
  const text = secret.trim();
  const key = Buffer.from(text.startsWith(PREFIX) ? text.slice(PREFIX.length) : "", "base64");
  if (key.length >= KEY_MIN && key.length <= KEY_MAX) return key;
  throw new TypeError(`the secret of calls is not \`${PREFIX}\` and ${KEY_MIN} to ${KEY_MAX} bytes as base64`);
}

function digest(key: Buffer, id: string, timestamp: string, body: string | Uint8Array): Buffer {
  return createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
}

/** The value of `webhook-signature` for a message. */
export function sign(secret: string, id: string, timestamp: string | number, body: string | Uint8Array): string {
  return `v1,${digest(keyOf(secret), id, String(timestamp), body).toString("base64")}`;
}

/** Checks signatures under one of some secrets, so that a secret can be replaced without a gap. */
export class SignatureVerifier {
  readonly #keys: Buffer[];

  constructor(secrets: string | readonly string[]) {
    this.#keys = (typeof secrets === "string" ? [secrets] : secrets).map(keyOf);
  }

  /** The reason why a message is refused; undefined for a good one. */
  refusal(headers: SignatureHeaders, body: Uint8Array, nowMs: number = Date.now()): string | undefined {
    const { id, timestamp, signature } = headers;
    if (!id || !timestamp || !signature) return "the call has no signature: give the server the signing secret of this worker";
    const seconds = Number(timestamp);
    if (!/^\d+$/.test(timestamp) || Math.abs(nowMs / 1_000 - seconds) > TOLERANCE_S) {
      return "the signature is too old or too new: compare the clocks of the server and the worker";
    }
    const given = signature.split(" ").filter((one) => one.startsWith("v1,")).map((one) => Buffer.from(one.slice(3), "base64"));
    const expected = this.#keys.map((key) => digest(key, id, timestamp, body));
    const isGood = expected.some((one) => given.some((other) => one.length === other.length && timingSafeEqual(one, other)));
    return isGood ? undefined : "the signature is wrong: the server and this worker have different secrets";
  }
}
