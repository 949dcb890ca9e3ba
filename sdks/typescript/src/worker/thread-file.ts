/** The files of the threads, which stand beside the built package. */
import { existsSync } from "node:fs";

export function threadFile(name: string): URL {
  const file = new URL(`./${name}`, import.meta.url);
  if (!existsSync(file)) {
    throw new Error(`${file.pathname} is missing: do not bundle the package windlass, mark it as external`);
  }
  return file;
}
