// All of one card: text, owner, history.
import { useEffect, useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Task, TaskStep } from "../../api/types";
import { may } from "../../live/session";
import { agents } from "../../live/store";
import { Dialog, Field, Loaded, Time } from "../../parts/ui";
import { text } from "../../text";
import { assignTask } from "./move";

export function CardDetail({ of: t, onClose }: { of: Task; onClose: () => void }) {
  const [steps, setSteps] = useState<TaskStep[]>();
  useEffect(() => {
    call("taskHistory", { id: t.id }).then((r) => setSteps(r.moves), () => setSteps([]));
  }, [t.id, t.updated_at]);
  return (
    <Dialog title={t.title} onClose={onClose}>
      <p class="dim"><code>{t.id}</code> · {t.priority} · {text.board.columns[t.status]} · {t.created_by}</p>
      {t.description && <p class="plain">{t.description}</p>}
      {t.blocked_reason && <p class="bad">{t.blocked_reason} {t.blocked_by && <code>{t.blocked_by}</code>}</p>}
      {t.reviewers.length > 0 && <p>{text.board.columns["in_review"]}: {t.reviewers.join(", ")}</p>}
      {may("taskAssign") && (
        <Field label={text.board.assign}>
          <select value={t.assigned_to ?? ""} onChange={(e) => void assignTask(t.id, e.currentTarget.value)}>
            <option value="">{text.board.unassigned}</option>
            {[...(agents.items.value?.keys() ?? [])].map((n) => <option key={n}>{n}</option>)}
          </select>
        </Field>
      )}
      <h3>{text.board.history}</h3>
      <Loaded items={steps} empty={text.common.none}>
        {(list) => <ol class="history">{list.map((s, i) => <li key={i}><Time at={s.at} /> {s.from} → {s.to} · {s.by} {s.note && <>· {s.note}</>}</li>)}</ol>}
      </Loaded>
    </Dialog>
  );
}
