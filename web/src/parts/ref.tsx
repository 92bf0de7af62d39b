// An object or an actor of the log as a person knows it: its name, with the id behind it, and a link to its page.
import type { Kind } from "../live/store";
import { agents, images, need, projects, sandboxes, snapshots, taskRuns, templates, tokens, volumes } from "../live/store";
import { may, self } from "../live/session";
import { link } from "../router";

/** Only what some page has loaded: a log is no reason to read every list.  Tokens are few, and every actor is one. */
const NAMED: Record<string, Kind<{ name?: string | null }>> = {
  sandbox: sandboxes, image: images, volume: volumes, snapshot: snapshots, template: templates, task_run: taskRuns, project: projects, agent: agents,
};

function tokenName(id: string): string | undefined {
  if (self.value?.id === id) return self.value.name ?? undefined;
  return may("tokenList") ? need(tokens)?.get(id)?.name : undefined;
}

function hrefOf(kind: string, id: string): string | undefined {
  if (kind === "sandbox") return link("instances", id);
  if (kind === "task_run") return link("tasks", id);
  if (kind === "agent") return link("agents");
  return undefined;
}

export function Ref({ to }: { to: string }) {
  const [kind = "", id = ""] = to.split(/\/(.*)/s);
  const name = kind === "token" ? tokenName(id) : NAMED[kind]?.items.value?.get(id)?.name;
  const label = name ? <span title={to}>{kind}/<strong>{name}</strong></span> : <code>{to}</code>;
  const href = hrefOf(kind, id);
  return href ? <a href={href}>{label}</a> : label;
}
