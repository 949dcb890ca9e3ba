// Counts, sizes, amounts and ids as texts.

const plain = new Intl.NumberFormat("en-US");

/** "1,284". */
export function count(n: number): string {
  return plain.format(n);
}

/** "10,000+" where counting stopped. */
export function counted(of: { count: number; more?: boolean }): string {
  return `${count(of.count)}${of.more ? "+" : ""}`;
}

/** "17 B", "4.1 KB", "5.0 MB". */
export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let size = n;
  let unit = -1;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size < 100 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** An amount in minor units, as the command line shows it: accounts have no currency. */
export function money(minor: number): string {
  return plain.format(minor);
}

/** "run_01a1e2f4…89e7" as "01a1e2f4…89e7": ids of one minute share the start, so the end stays. */
export function shortId(id: string): string {
  const bare = id.replace(/^[a-z]+_(?=[0-9a-f]{12})/, "");
  return bare.length > 14 ? `${bare.slice(0, 8)}…${bare.slice(-4)}` : bare;
}

/** "…89e7". */
export function tail(id: string): string {
  return id.length > 6 ? `…${id.slice(-4)}` : id;
}
