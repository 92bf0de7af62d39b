// Moving and assigning cards: the server's rules decide, and a refusal is shown with its reason.
import { ApiError, call } from "../../api/client";
import type { Task } from "../../api/types";
import { tasks } from "../../live/store";
import { notify } from "../../parts/notices";
import { text } from "../../text";

export type Status = Task["status"];

async function change(id: string, work: () => Promise<{ approval?: string | null }>): Promise<void> {
  try {
    const done = await work();
    if (done.approval) notify("done", text.board.proposed);
  } catch (e) {
    notify("failed", text.board.refused((e as Error).message), e instanceof ApiError ? e.hint : undefined);
  }
  tasks.changed(id);
}

export async function moveTask(id: string, status: Status, blockedReason?: string): Promise<void> {
  if (tasks.items.value?.get(id)?.status === status) return;
  const reason = status === "blocked" ? { blocked_reason: blockedReason ?? "blocked by a person at the board" } : {};
  await change(id, () => call("taskMove", { id }, { status, ...reason }));
}

export async function assignTask(id: string, agent: string): Promise<void> {
  await change(id, () => (agent ? call("taskAssign", { id }, { agent }) : call("taskUnassign", { id }, {} as never)) as Promise<{ approval?: string | null }>);
}
