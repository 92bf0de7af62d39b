// A tile of the wall: the screen of one session as the server has it, twice a second, while the tile can be seen.
import { useEffect, useRef, useState } from "preact/hooks";
import { socketUrl } from "../api/client";
import type { TerminalSession } from "../api/types";
import { text } from "../text";

const UPDATES = 2; // a second
const RETRY_MS = 2000;

interface Update {
  type: string;
  rows: number;
  lines: { row: number; runs: { text: string }[] }[];
}

/** Follows a screen; returns what ends that. */
function follow(session: TerminalSession, onRows: (rows: readonly string[]) => void): () => void {
  let rows: string[] = [];
  let socket: WebSocket | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let over = false;

  const update = (m: Update): void => {
    rows = Array.from({ length: m.rows }, (_, i) => rows[i] ?? "");
    for (const line of m.lines) rows[line.row] = line.runs.map((r) => r.text).join("");
    onRows(rows);
  };
  const connect = (): void => {
    const args = { id: session.sandbox, session: session.id, role: "observer", raw: false, screen: true, updates: UPDATES } as const;
    socket = new WebSocket(socketUrl("sessionAttach", args), "holt.attach.v1");
    socket.onmessage = (m) => {
      const got = JSON.parse(m.data as string) as Update;
      if (got.type === "screen") update(got);
      else if (got.type === "exit") over = true;
    };
    socket.onclose = () => {
      if (!over) timer = setTimeout(connect, RETRY_MS);
    };
  };
  connect();
  return () => {
    over = true;
    clearTimeout(timer);
    socket?.close(1000);
  };
}

export function Tile({ session, title, onOpen }: { session: TerminalSession; title: string; onOpen: () => void }) {
  const box = useRef<HTMLElement>(null);
  const [rows, setRows] = useState<readonly string[]>([]);

  useEffect(() => {
    let stop: (() => void) | undefined;
    const seen = new IntersectionObserver((entries) => {
      const visible = entries.at(-1)?.isIntersecting;
      if (visible && !stop) stop = follow(session, setRows);
      else if (!visible) {
        stop?.();
        stop = undefined;
      }
    });
    if (box.current) seen.observe(box.current);
    return () => {
      seen.disconnect();
      stop?.();
    };
  }, [session.id]);

  return (
    <article class="tile" ref={box}>
      <header class="pane-bar">
        <strong>{title}</strong>
        <span class="pane-state">{session.controller ? text.terminal.heldBy(session.controller) : ""}</span>
        <button onClick={onOpen}>{text.terminal.open}</button>
      </header>
      <pre>{rows.join("\n")}</pre>
    </article>
  );
}
