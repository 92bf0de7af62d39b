// Server-sent events as they come over fetch().  Not an EventSource: that hands out named events only to listeners of each name,
// and hides the status of a refusal.
import { ApiError } from "../api/client";

export interface Message {
  event: string;
  id: string;
  data: string;
}

function parse(block: string): Message {
  const message: Message = { event: "message", id: "", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, name = "", value = ""] = /^(\w+): ?(.*)$/s.exec(line) ?? [];
    if (name === "data") data.push(value);
    else if (name === "event" || name === "id") message[name] = value;
  }
  message.data = data.join("\n");
  return message;
}

/** Reads one stream to its end; comments that keep a connection open are left out. */
export async function* readMessages(path: string, last: string, signal: AbortSignal, onOpen?: () => void): AsyncGenerator<Message> {
  const headers = { accept: "text/event-stream", ...(last ? { "last-event-id": last } : {}) };
  const reply = await fetch(path, { headers, credentials: "same-origin", signal });
  if (!reply.ok || !reply.body) throw new ApiError(reply.status, "refused", `status ${reply.status}`, undefined, undefined);
  onOpen?.();
  const reader = reply.body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const message = parse(block);
      if (message.data) yield message;
    }
  }
}
