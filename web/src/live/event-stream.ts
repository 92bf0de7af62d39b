// Follows the server-sent events of holt.  Not an EventSource: that hands out named events only to listeners of each name, and
// hides the status of a refusal.  Resumes after the last event by Last-Event-ID.
import { ApiError } from "../api/client";
import type { Event } from "../api/types";

export interface Follower {
  onOpen: () => void;
  onEvent: (event: Event) => void;
  onLost: (why: ApiError) => void;
}

const RETRY_MS = [250, 500, 1000, 2000];

function dataOf(block: string): string {
  return block.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n");
}

export class EventStream {
  private tries = 0;
  private stopped = new AbortController();

  constructor(private last: number, private readonly follower: Follower) {
    void this.run();
  }

  stop(): void {
    this.stopped.abort();
  }

  private async run(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      try {
        await this.follow();
      } catch (e) {
        if (this.stopped.signal.aborted) return;
        const why = e instanceof ApiError ? e : new ApiError(0, "unreachable", (e as Error).message, undefined, undefined);
        this.follower.onLost(why);
        if (why.status === 401 || why.status === 403) return;
      }
      await new Promise((go) => setTimeout(go, RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)]));
    }
  }

  private async follow(): Promise<void> {
    const headers = { accept: "text/event-stream", "last-event-id": String(this.last) };
    const reply = await fetch("/holt/v1/events", { headers, credentials: "same-origin", signal: this.stopped.signal });
    if (!reply.ok || !reply.body) throw new ApiError(reply.status, "refused", `status ${reply.status}`, undefined, undefined);
    this.follower.onOpen();
    this.tries = 0;
    await this.read(reply.body);
    throw new ApiError(0, "ended", "the stream has ended", undefined, undefined);
  }

  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) this.take(dataOf(block));
    }
  }

  private take(data: string): void {
    if (!data) return; // a comment that keeps the connection open
    const event = JSON.parse(data) as Event;
    this.last = event.seq;
    this.follower.onEvent(event);
  }
}
