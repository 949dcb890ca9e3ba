// Search parameters of the address: plain texts, so that an address can be read and typed.

export type Search = Record<string, string | undefined>;

export function parseSearch(text: string): Search {
  return Object.fromEntries(new URLSearchParams(text));
}

export function writeSearch(search: Record<string, unknown>): string {
  const fields = Object.entries(search).filter(([, value]) => value !== undefined && value !== null && value !== "");
  if (fields.length === 0) return "";
  const text = new URLSearchParams(fields.map(([key, value]) => [key, String(value)])).toString();
  // Colons, commas and slashes are frequent in queries and harmless in an address.
  return `?${text.replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%2F/g, "/")}`;
}
