// Follows the server-sent events of holt, and resumes after the last one by Last-Event-ID.
import { ApiError } from "../api/client";
import type { Event } from "../api/types";
import { readMessages } from "./sse";

export interface Follower {
  onOpen: () => void;
  onEvent: (event: Event) => void;
  onLost: (why: ApiError) => void;
}

const RETRY_MS = [250, 500, 1000, 2000];

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
    const opened = (): void => {
      this.follower.onOpen();
      this.tries = 0;
    };
    for await (const message of readMessages("/holt/v1/events", String(this.last), this.stopped.signal, opened)) {
      const event = JSON.parse(message.data) as Event;
      this.last = event.seq;
      this.follower.onEvent(event);
    }
    throw new ApiError(0, "ended", "the stream has ended", undefined, undefined);
  }
}
