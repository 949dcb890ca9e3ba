// A parser of `text/event-stream`. `EventSource` cannot send headers and hides the id of the last event from a new
// connection, hence a parser of our own over `fetch`.

export interface SseMessage {
  type: string;
  data: string;
  id: string | undefined;
}

export class SseParser {
  private rest = "";
  private type = "";
  private data: string[] = [];
  private id: string | undefined;

  /** Reads the next piece of the stream; `isBeat` in the answer says that a comment came. */
  push(piece: string): { messages: SseMessage[]; isBeat: boolean } {
    const messages: SseMessage[] = [];
    let isBeat = false;
    const lines = (this.rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (this.data.length > 0) messages.push({ type: this.type || "message", data: this.data.join("\n"), id: this.id });
        this.type = "";
        this.data = [];
      } else if (line.startsWith(":")) {
        isBeat = true;
      } else {
        this.field(line);
      }
    }
    return { messages, isBeat };
  }

  private field(line: string) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.type = value;
    else if (name === "data") this.data.push(value);
    else if (name === "id") this.id = value;
  }
}
