// Dictionaries. Each page has one file with `en` and `zh: typeof en`: a missing key does not compile. Messages with
// values are functions, never joined pieces. API codes, node keys, statuses in JSON and paths are not translated.
import { type Language, useSettings } from "../format/settings";

export type Words<T> = Record<Language, T>;

/** The words of a page in the viewer's language. */
export function useWords<T>(words: Words<T>): T {
  return words[useSettings().language];
}
