/** Standard Schema (zod, valibot, arktype …): its interface, and checks that name the wrong place. */
import { SchemaError } from "./errors.ts";

/** A schema of any library that implements Standard Schema 1. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

interface SchemaIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<SchemaIssue> };

/** Checks a value; `SchemaError` names every wrong place: `$.width: expected number, received string`. */
export async function check<Output>(
  schema: StandardSchema<unknown, Output>, value: unknown, subject: string,
): Promise<Output> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  throw new SchemaError(
    `${subject} does not fit its schema`,
    result.issues.map(({ path, message }) => ({ path: placeOf(path ?? []), message: plain(message) })),
  );
}

function placeOf(path: NonNullable<SchemaIssue["path"]>): string {
  return path.reduce<string>((place, segment) => {
    const key = typeof segment === "object" ? segment.key : segment;
    if (typeof key === "number") return `${place}[${key}]`;
    return /^[A-Za-z_]\w*$/.test(String(key)) ? `${place}.${String(key)}` : `${place}[${JSON.stringify(String(key))}]`;
  }, "$");
}

/** `Invalid input: expected number` says the first words of the error again. */
function plain(message: string): string {
  return message.replace(/^Invalid input: /, "");
}
