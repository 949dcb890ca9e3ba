// The fields of the start form: from the declared variables of a definition, or from the parameters that its text reads.

export interface VariableField {
  name: string;
  type: string;
  isRequired: boolean;
  /** The default as JSON text. */
  byDefault?: string;
}

/** The declared variables; `undefined` where the definition declares none. */
export function variablesOf(definition: Record<string, unknown> | undefined): VariableField[] | undefined {
  const declared = definition?.variables;
  if (declared === null || typeof declared !== "object" || Array.isArray(declared)) return undefined;
  return Object.entries(declared).map(([name, of]) => {
    const { type, required, defaultValue } = (of ?? {}) as { type?: unknown; required?: unknown; defaultValue?: unknown };
    return { name, type: typeof type === "string" ? type : "string", isRequired: required === true, byDefault: defaultValue === undefined ? undefined : JSON.stringify(defaultValue) };
  });
}

/** The parameters that the text names as `$params.x` or `{{__in.x}}`, for a definition without declarations. */
export function paramsRead(text: string): string[] {
  const found = new Set<string>();
  for (const match of text.matchAll(/(?:\$params\.|params\.|__in\.|\$var\.)([A-Za-z_]\w*)/g)) if (match[1]) found.add(match[1]);
  return [...found].slice(0, 30);
}

/** The value of a typed text; an empty one is absent. */
export function valueOf(field: VariableField, text: string): { value?: unknown; isBad: boolean } {
  const trimmed = text.trim();
  if (trimmed === "") return { isBad: false };
  switch (field.type) {
    case "number": {
      const value = Number(trimmed);
      return Number.isFinite(value) ? { value, isBad: false } : { isBad: true };
    }
    case "boolean": return trimmed === "true" || trimmed === "false" ? { value: trimmed === "true", isBad: false } : { isBad: true };
    case "object": case "array": {
      try {
        const value: unknown = JSON.parse(trimmed);
        const fits = field.type === "array" ? Array.isArray(value) : typeof value === "object" && value !== null && !Array.isArray(value);
        return fits ? { value, isBad: false } : { isBad: true };
      } catch {
        return { isBad: true };
      }
    }
    default: return { value: text, isBad: false };
  }
}

/** `a=1 b=two` as an object; `undefined` if a part is no label. */
export function labelsOf(text: string): Record<string, string> | undefined {
  const labels: Record<string, string> = {};
  for (const part of text.split(/\s+/).filter(Boolean)) {
    const place = part.indexOf("=");
    if (place < 1) return undefined;
    labels[part.slice(0, place)] = part.slice(place + 1);
  }
  return labels;
}
