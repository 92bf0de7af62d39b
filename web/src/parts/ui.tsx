// Small components that every page uses.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { text } from "../text";
import { now } from "./clock";
import { ago } from "./format";

export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="dim">–</span>;
  return <time dateTime={at} title={at}>{ago(at, now.value)}</time>;
}

const MARKS: Record<string, string> = {
  running: "●", online: "●", live: "●", exited: "✓", done: "✓", approved: "✓", ready: "✓", paused: "❚❚", stopped: "■", failed: "✕", rejected: "✕", revoked: "✕",
  creating: "◌", starting: "◌", stopping: "◌", working: "◌", pending: "?", offline: "○", lost: "✕", stalled: "!", busy: "●", orphan: "!", closed: "–", staging: "◌", provisioning: "◌", completing: "◌", completed: "✓", cached: "✓", succeeded: "✓", checking: "◌", waiting: "?", applying: "◌", rolling_back: "◌", rolled_back: "–", failed_preserved: "✕", cancelled: "–",
};

/** A state is a mark and a word: never colour alone. */
export function State({ of }: { of: string }) {
  return <span class={`state state-${of}`}><span aria-hidden="true">{MARKS[of] ?? "•"}</span> {of}</span>;
}

const BADGES: Record<string, [string, string]> = {
  native: ["NS", "native sandbox"], vm: ["VM", "virtual machine"], kube: ["POD", "Kubernetes pod"],
};

export function RuntimeBadge({ of }: { of: string }) {
  const [short, long] = BADGES[of] ?? ["CT", `container (${of})`];
  return <span class="badge" title={long}>[{short}]</span>;
}

export function CopyText({ value, children }: { value: string; children?: ComponentChildren }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(value);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button class="quiet copy" title={text.common.copy} onClick={() => void copy()}>
      {children ?? <code>{value}</code>} <span aria-live="polite">{copied ? text.common.copied : "⧉"}</span>
    </button>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Loading() {
  return <div class="skeleton" role="status" aria-label={text.common.loading}><i /><i /><i /></div>;
}

export function Problem({ error }: { error: ApiError }) {
  return (
    <div class="problem" role="alert">
      <strong>{error.message}</strong>
      {error.object && <code>{error.object}</code>}
      {error.hint && <p>{error.hint}</p>}
    </div>
  );
}

/** What a list is while it loads, after a failure, when it is empty, and with its items. */
export function Loaded<T>({ items, error, empty, children }: {
  items: readonly T[] | undefined; error?: ApiError | undefined; empty: ComponentChildren; children: (items: readonly T[]) => ComponentChildren;
}) {
  if (!items) return error ? <Problem error={error} /> : <Loading />;
  return items.length ? <>{children(items)}</> : <Empty>{empty}</Empty>;
}

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={ref} aria-label={title} onCancel={onClose} onClick={(e) => e.target === ref.current && onClose()}>
      <div class="dialog">
        <header><h2>{title}</h2><button class="quiet" aria-label={text.common.close} onClick={onClose}>✕</button></header>
        {children}
      </div>
    </dialog>
  );
}

export function Confirm({ question, verb, onYes, onClose }: { question: string; verb: string; onYes: () => void; onClose: () => void }) {
  return (
    <Dialog title={verb} onClose={onClose}>
      <p>{question}</p>
      <footer>
        <button onClick={onClose} autoFocus>{text.common.cancel}</button>
        <button class="danger" onClick={() => { onClose(); onYes(); }}>{verb}</button>
      </footer>
    </Dialog>
  );
}

export function Field({ label, hint, error, children }: { label: string; hint?: string; error?: string | undefined; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
      {error ? <small class="bad" role="alert">{error}</small> : hint && <small>{hint}</small>}
    </label>
  );
}

export function Tabs({ tabs, current, href }: { tabs: Record<string, string>; current: string; href: (tab: string) => string }) {
  return (
    <nav class="tabs">
      {Object.entries(tabs).map(([id, label]) => <a key={id} href={href(id)} aria-current={id === current ? "page" : undefined}>{label}</a>)}
    </nav>
  );
}
