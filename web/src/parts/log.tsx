// The output of a task or a rollout as it comes: plain lines, and an agent's own events read as what they say.
import { useEffect, useRef, useState } from "preact/hooks";
import { readMessages, type Message } from "../live/sse";
import { text } from "../text";
import { Loading } from "./ui";

interface Line {
  kind: "text" | "tool" | "said" | "end" | "bad";
  words: string;
}

const KEPT = 4000; // lines; older ones leave the page, the download has all
const RETRY_MS = 1000;
const SHORT = 400;

interface AgentEvent {
  type?: string;
  message?: { content?: { type: string; text?: string; name?: string; input?: unknown }[] };
  result?: unknown;
}

/** What an event of an agent's stream-json says to a person; events without words have none. */
function linesOf(event: AgentEvent): Line[] {
  const parts = Array.isArray(event.message?.content) ? event.message.content : [];
  const lines: Line[] = [];
  for (const part of parts) {
    if (part.type === "text" && part.text) lines.push({ kind: "said", words: part.text });
    else if (part.type === "tool_use") lines.push({ kind: "tool", words: `${part.name ?? "tool"} ${JSON.stringify(part.input ?? {}).slice(0, SHORT)}` });
  }
  if (event.type === "result" && event.result) lines.push({ kind: "said", words: String(event.result) });
  return lines;
}

function toLines({ event, data }: Message): Line[] {
  if (event === "completed") return [{ kind: "end", words: text.tasks.ended(data) }];
  if (event === "error") return [{ kind: "bad", words: data }];
  if (event !== "event") return data.split("\n").map((words) => ({ kind: "text", words }));
  try {
    return linesOf(JSON.parse(data) as AgentEvent);
  } catch {
    return [{ kind: "text", words: data }];
  }
}

/** Follows the log from its beginning; a lost connection continues after the last message. */
async function follow(path: string, signal: AbortSignal, onLines: (lines: Line[]) => void): Promise<void> {
  for (let last = ""; !signal.aborted;) {
    try {
      for await (const message of readMessages(path, last, signal)) {
        last = message.id || last;
        onLines(toLines(message));
        if (message.event === "completed" || message.event === "error") return;
      }
    } catch (e) {
      if (signal.aborted) return;
      const status = (e as { status?: number }).status ?? 0;
      if (status >= 400) {
        onLines([{ kind: "bad", words: (e as Error).message }]);
        return;
      }
    }
    await new Promise((go) => setTimeout(go, RETRY_MS));
  }
}

/** path: of an operation that sends its output as events, from pathOf(). */
export function Log({ path }: { path: string }) {
  const [lines, setLines] = useState<readonly Line[]>();
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    const stop = new AbortController();
    let fresh: Line[] = [];
    let frame = 0;
    const show = (): void => {
      frame = 0;
      const added = fresh;
      fresh = [];
      setLines((old) => [...(old ?? []), ...added].slice(-KEPT));
    };
    void follow(path, stop.signal, (more) => {
      fresh.push(...more);
      frame ||= requestAnimationFrame(show);
    });
    return () => {
      stop.abort();
      cancelAnimationFrame(frame);
      setLines(undefined);
    };
  }, [path]);
  useEffect(() => {
    if (atEnd.current) box.current?.scrollTo(0, box.current.scrollHeight);
  }, [lines]);
  const onScroll = (): void => {
    const b = box.current;
    atEnd.current = !b || b.scrollHeight - b.scrollTop - b.clientHeight < 40;
  };
  return (
    <div class="log" ref={box} onScroll={onScroll} role="log" aria-label={text.tasks.log} tabIndex={0}>
      {lines ? lines.map((l, i) => <p key={i} class={`log-${l.kind}`}>{l.words}</p>) : <Loading />}
    </div>
  );
}
