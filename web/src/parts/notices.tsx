// Short messages about what was done or refused, and the function that runs an action and reports it.
import { signal } from "@preact/signals";
import { ApiError } from "../api/client";
import { text } from "../text";

interface Notice {
  id: number;
  kind: "done" | "failed";
  title: string;
  detail?: string | undefined;
}

const notices = signal<readonly Notice[]>([]);
let next = 1;
const SHOWN_MS = 6000;

export function notify(kind: Notice["kind"], title: string, detail?: string): void {
  const id = next++;
  notices.value = [...notices.value.slice(-4), { id, kind, title, detail }];
  if (kind === "done") setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  notices.value = notices.value.filter((n) => n.id !== id);
}

/** Runs an action; a failure is shown with its object and remedy.  True: it succeeded. */
export async function act(what: string, work: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await work();
    if (done) notify("done", done);
    return true;
  } catch (e) {
    const hint = e instanceof ApiError && e.hint ? ` ${text.errors.hint}: ${e.hint}` : "";
    notify("failed", text.errors.failed(what), `${(e as Error).message}.${hint}`);
    return false;
  }
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map((n) => (
        <div key={n.id} class={`notice notice-${n.kind}`}>
          <div>
            <strong>{n.title}</strong>
            {n.detail && <p>{n.detail}</p>}
          </div>
          <button class="quiet" aria-label={text.common.close} onClick={() => dismiss(n.id)}>✕</button>
        </div>
      ))}
    </div>
  );
}
