// The panes that are open, and starting a shell for a new one.
import { signal } from "@preact/signals";
import { call } from "../api/client";

export interface OpenPane {
  sandbox: string;
  exec: string;
  title: string;
  control: boolean;
}

export const panes = signal<readonly OpenPane[]>([]);

export function addPane(pane: OpenPane): void {
  if (!panes.value.some((p) => p.exec === pane.exec)) panes.value = [...panes.value, pane];
}

export function removePane(exec: string): void {
  panes.value = panes.value.filter((p) => p.exec !== exec);
}

const SHELL = ["/bin/sh", "-c", "cd \"${HOME:-/}\" 2>/dev/null; command -v bash >/dev/null && exec bash -i || exec sh -i"];

/** Starts an interactive shell; it goes on when every pane is closed. */
export async function startShell(sandbox: string, title: string): Promise<OpenPane> {
  const exec = await call("execCreate", { id: sandbox }, { command: SHELL, pty: { rows: 24, cols: 80 }, env: { TERM: "xterm-256color" }, background: true });
  const pane = { sandbox, exec: (exec as { id: string }).id, title, control: true };
  addPane(pane);
  return pane;
}

/** The newest terminal that runs in a sandbox, or a new shell. */
export async function openPane(sandbox: string, title: string): Promise<OpenPane> {
  const list = await call("execList", { id: sandbox, limit: 1000 });
  const running = list.execs.filter((e) => e.pty && !e.ended_at).at(-1);
  if (!running) return startShell(sandbox, title);
  const pane = { sandbox, exec: running.id, title, control: false };
  addPane(pane);
  return pane;
}
