/** Lists that come in pages. */

/** Reads the items of all pages, one page after another. */
export async function* follow<T>(
  read: (cursor: string | undefined) => Promise<{ items: T[]; next?: string | null }>,
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    yield* page.items;
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
}
