// Commands for the terminal: what a dialog does, written for the command line and for curl.

/** A word of a command, quoted where a shell would split or change it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

/** A command of `windlass`; absent and empty words are left out. */
export function cli(...words: (string | number | undefined | false)[]): string {
  const given = words.filter((word) => word !== undefined && word !== false && word !== "");
  return ["windlass", ...given.map((word) => quoted(String(word)))].join(" ");
}

/** A request with curl, to the server of this page. */
export function curl(method: string, path: string, body?: unknown): string {
  const parts = ["curl", "-X", method];
  if (body !== undefined) parts.push("-H", quoted("content-type: application/json"), "-d", quoted(JSON.stringify(body)));
  return [...parts, quoted(`${location.origin}${path}`)].join(" ");
}
