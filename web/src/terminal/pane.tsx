// A pane: one terminal of a sandbox, watched by default, typed into on request.
import { useEffect, useRef, useState } from "preact/hooks";
import { text } from "../text";
import { call, callRaw } from "../api/client";
import { act, notify } from "../parts/notices";
import { Attach } from "./attach";
import type { Screen } from "./screen";

export interface PaneProps {
  sandbox: string;
  exec: string;
  title: string;
  control?: boolean;
  onClose?: () => void;
}

interface Parts {
  attach: Attach;
  screen: Screen;
}

function describe(attach: Attach): string {
  const exec = attach.exec.value;
  if (attach.state.value === "lost") return text.terminal.lost;
  if (attach.state.value === "ended") return text.terminal.ended(exec?.signal ? `signal ${exec.signal}` : String(exec?.exit_code ?? exec?.state));
  return attach.role.value === "controller" ? text.terminal.controller : text.terminal.observer;
}

/** Paints the terminal as the server has it, and goes on from there. */
async function repaint({ attach, screen }: Parts): Promise<void> {
  const now = await call("execScreen", attach.where);
  const reply = await callRaw("execScreen", { ...attach.where, format: "ansi", offset: now.offset });
  const lines = (await reply.text()).replace(/\n$/, "").split("\n");
  const { row = 0, col = 0 } = now.cursor as { row?: number; col?: number };
  screen.term.reset();
  screen.term.write(`${now.alternate ? "\x1b[?1049h" : ""}\x1b[H${lines.join("\r\n")}\x1b[0m\x1b[${row + 1};${col + 1}H`);
  attach.again(attach.role.value, now.offset);
}

function Bar({ parts, title, onClose }: { parts: Parts | undefined; title: string; onClose?: (() => void) | undefined }) {
  const attach = parts?.attach;
  const controls = attach?.role.value === "controller";
  const resync = () => parts && void act(text.terminal.resync, () => repaint(parts));
  return (
    <header class="pane-bar">
      <strong>{title}</strong>
      <span class={`pane-state pane-${attach?.state.value ?? "connecting"}`} role="status">{attach ? describe(attach) : text.common.loading}</span>
      {attach && attach.state.value !== "ended" && (
        <button onClick={() => attach.again(controls ? "observer" : "controller")}>{controls ? text.terminal.leave : text.terminal.take}</button>
      )}
      <button onClick={resync} title="Repaint from the server's screen">{text.terminal.resync}</button>
      {onClose && <button class="quiet" aria-label={text.terminal.close} onClick={onClose}>✕</button>}
    </header>
  );
}

export function Pane({ sandbox, exec, title, control = false, onClose }: PaneProps) {
  const box = useRef<HTMLDivElement>(null);
  const [parts, setParts] = useState<Parts>();

  useEffect(() => {
    let made: Parts | undefined;
    let stopped = false;
    void import("./screen").then(({ Screen }) => {
      if (stopped || !box.current) return;
      const attach = new Attach(sandbox, exec, control ? "controller" : "observer");
      const screen = new Screen(box.current, false, (rows, cols) => attach.resize(rows, cols));
      attach.onOutput = (bytes) => screen.write(bytes);
      attach.onBack = () => notify("done", text.terminal.back, title);
      attach.onGap = (bytes) => screen.term.write(`\r\n[${text.terminal.gap(bytes)}]\r\n`);
      attach.role.subscribe((role) => {
        screen.term.options.disableStdin = role !== "controller";
        if (role === "controller") attach.resize(screen.term.rows, screen.term.cols);
      });
      screen.term.onData((data) => attach.type(data));
      if (control) screen.term.focus();
      made = { attach, screen };
      setParts(made);
    });
    return () => {
      stopped = true;
      made?.attach.close();
      made?.screen.dispose();
    };
  }, [sandbox, exec]);

  return (
    <section class="pane" aria-label={title}>
      <Bar parts={parts} title={title} onClose={onClose} />
      <div class="pane-screen" ref={box} />
      <footer class="dim">{text.terminal.escape}</footer>
    </section>
  );
}
