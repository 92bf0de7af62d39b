// One card of the board.
import type { Task } from "../../api/types";
import { may } from "../../live/session";
import { Time } from "../../parts/ui";
import { text } from "../../text";
import { moveTask, type Status } from "./move";

export function Card({ of: t, open }: { of: Task; open: () => void }) {
  const onDragStart = (e: DragEvent) => {
    e.dataTransfer?.setData("text/x-holt-task", t.id);
    if (e.dataTransfer) e.dataTransfer.effectAllowed = "move";
  };
  const movable = may("taskMove");
  return (
    <article class="card task" draggable={movable} onDragStart={onDragStart} data-id={t.id}>
      <button class="quiet title" onClick={open}><span class={`priority priority-${t.priority}`}>{t.priority}</span> {t.title}</button>
      <p class="dim">{t.claimed_by ?? t.assigned_to ?? text.board.unassigned} · <Time at={t.updated_at} /></p>
      {t.blocked_reason && <p class="bad">{t.blocked_reason}</p>}
      {movable && (
        <label class="hidden-label">
          <span class="hidden">{text.board.move}</span>
          <select value={t.status} onChange={(e) => {
            const to = e.currentTarget.value as Status;
            e.currentTarget.value = t.status; // the card moves when the server says so
            void moveTask(t.id, to);
          }}>
            {Object.entries(text.board.columns).map(([id, label]) => <option key={id} value={id}>{label}</option>)}
          </select>
        </label>
      )}
    </article>
  );
}
