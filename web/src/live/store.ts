// The one store of the page: objects by kind, kept up to date by the stream of events.
//
// A kind is loaded as a whole when a page first needs it.  After that an event about one of its objects marks that object as
// changed, and the changed ones are read again together: one at a time where there are few, the list where there are many.
// Nothing polls.  The stream resumes by itself (Last-Event-ID); a gap or a new daemon loads everything again.
import { batch, effect, signal, type Signal } from "@preact/signals";
import { ApiError, call, listAll } from "../api/client";
import type { Agent, Approval, Certificate, Event, Exec, Host, Image, Loadout, Playbook, Policy, Project, Rollout, Sandbox, Secret, ServerInfo, Snapshot, SshSession, Target, Task, TaskRun, Template, TerminalSession, Token, Volume, Webhook } from "../api/types";
import { EventStream } from "./event-stream";
import { self } from "./session";

type Id = string;

export interface Kind<T> {
  /** By id; undefined until it is loaded. */
  items: Signal<ReadonlyMap<Id, T> | undefined>;
  error: Signal<ApiError | undefined>;
  load: () => Promise<void>;
  changed: (id: Id) => void;
  gone: (id: Id) => void;
}

const TOGETHER = 8; // changed objects from which on the list is read instead
const GATHER_MS = 60;

function makeKind<T>(idOf: (item: T) => Id, all: () => Promise<T[]>, one: (id: Id) => Promise<T>): Kind<T> {
  const items = signal<ReadonlyMap<Id, T> | undefined>(undefined);
  const error = signal<ApiError | undefined>(undefined);
  const waiting = new Set<Id>();
  let loading: Promise<void> | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const replace = (change: (map: Map<Id, T>) => void): void => {
    const next = new Map(items.value);
    change(next);
    items.value = next;
  };
  const readAll = async (): Promise<void> => {
    try {
      const got = await all();
      batch(() => {
        items.value = new Map(got.map((item) => [idOf(item), item]));
        error.value = undefined;
      });
    } catch (e) {
      error.value = e as ApiError;
    }
  };
  const load = (): Promise<void> => {
    loading ??= readAll().finally(() => {
      loading = undefined;
    });
    return loading;
  };
  const readOne = async (id: Id): Promise<void> => {
    try {
      const item = await one(id);
      replace((map) => map.set(id, item));
    } catch (e) {
      if (e instanceof ApiError && e.status === 404) replace((map) => map.delete(id));
    }
  };
  const flush = async (): Promise<void> => {
    const ids = [...waiting];
    waiting.clear();
    if (ids.length >= TOGETHER) await load();
    else await Promise.all(ids.map(readOne));
    timer = undefined;
    if (waiting.size) schedule();
  };
  const schedule = (): void => {
    timer ??= setTimeout(() => void flush(), GATHER_MS);
  };
  return {
    items, error, load,
    changed: (id) => {
      if (!items.value) return;
      waiting.add(id);
      schedule();
    },
    gone: (id) => {
      waiting.delete(id);
      if (items.value?.has(id)) replace((map) => map.delete(id));
    },
  };
}

const LIMIT = 1000;

export const sandboxes = makeKind<Sandbox>(
  (s) => s.id,
  () => listAll(async (cursor) => {
    const r = await call("sandboxList", { limit: LIMIT, ...(cursor ? { cursor } : {}) });
    return { items: r.sandboxes, cursor: r.cursor };
  }),
  (id) => call("sandboxGet", { id }),
);
export const approvals = makeKind<Approval>(
  (a) => a.id,
  () => listAll(async (cursor) => {
    const r = await call("approvalList", { limit: LIMIT, ...(cursor ? { cursor } : {}) });
    return { items: r.approvals, cursor: r.cursor };
  }),
  (id) => call("approvalGet", { id }),
);
export const agents = makeKind<Agent>((a) => a.name, async () => (await call("agentList", {})).agents, (name) => call("agentGet", { name }));
export const projects = makeKind<Project>((p) => p.id, async () => (await call("projectList", {})).projects, (id) => call("projectGet", { id }));
export const tasks = makeKind<Task>(
  (t) => t.id,
  () => listAll(async (cursor) => {
    const r = await call("taskList", { limit: LIMIT, ...(cursor ? { cursor } : {}) });
    return { items: r.tasks, cursor: r.cursor };
  }),
  (id) => call("taskGet", { id }),
);
export const taskRuns = makeKind<TaskRun>(
  (t) => t.id,
  () => listAll(async (cursor) => {
    const r = await call("taskRunList", { limit: LIMIT, ...(cursor ? { cursor } : {}) });
    return { items: r.tasks, cursor: r.cursor };
  }),
  (id) => call("taskRunGet", { id }),
);
export const snapshots = makeKind<Snapshot>(
  (s) => s.id,
  () => listAll(async (cursor) => {
    const r = await call("snapshotList", { all: true, limit: LIMIT, ...(cursor ? { cursor } : {}) });
    return { items: r.snapshots, cursor: r.cursor };
  }),
  (id) => call("snapshotGet", { id }),
);
export const images = makeKind<Image>((i) => i.id, async () => (await call("imageList", {})).images, (id) => call("imageGet", { id }));
export const volumes = makeKind<Volume>((v) => v.id, async () => (await call("volumeList", {})).volumes, (id) => call("volumeGet", { id }));
export const secrets = makeKind<Secret>((s) => s.name, async () => (await call("secretList", {})).secrets, (name) => call("secretGet", { name }));
export const tokens = makeKind<Token>((t) => t.id, async () => (await call("tokenList", {})).tokens, (id) => call("tokenGet", { id }));
export const policies = makeKind<Policy>((p) => p.id, async () => (await call("policyList", {})).policies, (id) => call("policyGet", { id }));
export const templates = makeKind<Template>((t) => t.id, async () => (await call("templateList", {})).templates, (id) => call("templateGet", { id }));
export const hosts = makeKind<Host>((h) => h.name, async () => (await call("hostList", {})).hosts, (name) => call("hostGet", { name }));
export const playbooks = makeKind<Playbook>(
  (p) => p.id,
  () => listAll(async (cursor) => {
    const r = await call("playbookList", { limit: LIMIT, ...(cursor ? { cursor } : {}) });
    return { items: r.playbooks, cursor: r.cursor };
  }),
  (id) => call("playbookGet", { id }),
);
export const rollouts = makeKind<Rollout>(
  (r) => r.id,
  () => listAll(async (cursor) => {
    const r = await call("rolloutList", { limit: LIMIT, ...(cursor ? { cursor } : {}) });
    return { items: r.rollouts, cursor: r.cursor };
  }),
  (id) => call("rolloutGet", { id }),
);
export const targets = makeKind<Target>((t) => t.id, async () => (await call("targetList", {})).targets, (id) => call("targetGet", { id }));
export const loadouts = makeKind<Loadout>((l) => l.path, async () => (await call("loadoutList", {})).loadouts, (name) => call("loadoutGet", { name }));
export const certificates = makeKind<Certificate>((c) => c.id, async () => (await call("accessList", {})).certificates, (id) => call("accessGet", { id }));

/** Kinds without a read of one: a page loads them again when something has happened to them. */
function makeList<T>(idOf: (item: T) => Id, all: () => Promise<T[]>): Kind<T> {
  const kind: Kind<T> = makeKind(idOf, all, async (id) => {
    await kind.load();
    const item = kind.items.value?.get(id);
    if (!item) throw new ApiError(404, "not_found", id, undefined, undefined);
    return item;
  });
  return kind;
}
export const sessions = makeList<TerminalSession>(
  (s) => s.id,
  () => listAll(async (cursor) => {
    const r = await call("sessionListAll", { limit: LIMIT, ...(cursor ? { cursor } : {}) });
    return { items: r.sessions, cursor: r.cursor };
  }),
);
export const sshSessions = makeList<SshSession>((s) => s.id, async () => (await call("accessSessions", {})).sessions);
export const webhooks = makeList<Webhook>((w) => w.id, async () => (await call("webhookList", {})).webhooks);
export const info = signal<ServerInfo | undefined>(undefined);

const kinds: Record<string, Kind<never>> = {
  sandbox: sandboxes, approval: approvals, agent: agents, project: projects, task: tasks, image: images, volume: volumes, secret: secrets, token: tokens,
  task_run: taskRuns, snapshot: snapshots, policy: policies, template: templates, host: hosts, certificate: certificates, webhook: webhooks, playbook: playbooks, rollout: rollouts, target: targets,
} as unknown as Record<string, Kind<never>>;

/** Commands of one sandbox are read by its page; it hears here which have changed. */
export const execChanged = signal<Exec | undefined>(undefined);

/** The newest events, newest first. */
export const recent = signal<readonly Event[]>([]);
const RECENT = 500;

export type Link = "off" | "connecting" | "live" | "lost" | "refused";
export const connection = signal<Link>("off");
/** When the page was last known to be right. */
export const asOf = signal(new Date());

const GONE = new Set(["sandbox.destroyed", "agent.removed", "project.removed", "token.revoked", "secret.removed", "volume.removed", "image.removed", "snapshot.removed", "policy.removed", "template.removed", "webhook.removed", "playbook.removed", "target.removed"]);

function apply(event: Event): void {
  const [kind = "", id = ""] = event.object.split(/\/(.*)/s);
  if (kind === "exec") {
    const exec = event.data as unknown as Exec;
    execChanged.value = exec;
    if (event.type === "exec.started" || exec.ended_at) sandboxes.changed(exec.sandbox);
    return;
  }
  if (GONE.has(event.type)) kinds[kind]?.gone(id);
  else kinds[kind]?.changed(id);
}

let queue: Event[] = [];
let frame = 0;

/** Events are applied once per frame: however many arrive, the page is drawn once. */
function drain(): void {
  const events = queue;
  queue = [];
  frame = 0;
  batch(() => {
    events.forEach(apply);
    recent.value = [...events.reverse(), ...recent.value].slice(0, RECENT);
    asOf.value = new Date();
  });
}

function reloadLoaded(): void {
  for (const kind of Object.values(kinds)) if (kind.items.value) void kind.load();
}

let stream: EventStream | undefined;

function onEvent(event: Event): void {
  if (event.type === "system.epoch") reloadLoaded(); // changes of the last moment before an unclean end may be lost
  queue.push(event);
  frame ||= requestAnimationFrame(drain);
}

function onOpen(): void {
  const again = connection.value === "lost";
  connection.value = "live";
  asOf.value = new Date();
  if (again) void readInfo();
}

function onLost(why: ApiError): void {
  if (connection.value === "live") asOf.value = new Date();
  connection.value = why.status === 401 || why.status === 403 ? "refused" : "lost";
  if (why.status === 401) self.value = null;
}

async function readInfo(): Promise<void> {
  const now = await call("serverInfo", {});
  if (info.value && now.started_at !== info.value.started_at) reloadLoaded();
  info.value = now;
}

const RETRY_MS = 2000;
const EARLIER = 50; // events shown from before the page was opened

/** Begins to follow the events from now on. */
export async function start(): Promise<void> {
  connection.value = "connecting";
  try {
    await readInfo();
    const seq = info.value?.event_seq ?? 0;
    const page = await call("eventList", { since: Math.max(0, seq - EARLIER), limit: EARLIER });
    recent.value = [...page.events].reverse();
    stream?.stop();
    stream = new EventStream(seq, { onOpen, onEvent, onLost });
  } catch (e) {
    onLost(e as ApiError);
    if ((e as ApiError).status === 0) setTimeout(() => void start(), RETRY_MS);
  }
}

effect(() => {
  if (!self.value) {
    stream?.stop();
    connection.value = "off";
  } else if (connection.peek() === "off") void start();
});

/** Loads a kind if no page has yet, and gives what is there. */
export function need<T>(kind: Kind<T>): ReadonlyMap<Id, T> | undefined {
  if (!kind.items.value && !kind.error.value) void kind.load();
  return kind.items.value;
}
