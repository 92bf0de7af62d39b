// One instance: its terminals, commands, files, network, resources and history.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Sandbox } from "../../api/types";
import { need, sandboxes } from "../../live/store";
import { size } from "../../parts/format";
import { CopyText, Empty, Loading, RuntimeBadge, State, Tabs, Time } from "../../parts/ui";
import { link, place } from "../../router";
import { text } from "../../text";
import { InstanceActions, nameOf } from "../instances/actions";
import { Changes } from "./changes";
import { Commands } from "./commands";
import { InstanceEvents } from "./events";
import { Files } from "./files";
import { Network } from "./network";
import { Snapshots } from "./snapshots";
import { Stats } from "./stats";
import { Terminals } from "./terminals";

function Overview({ of: s }: { of: Sandbox }) {
  const limits = Object.entries(s.limits).filter(([, v]) => v !== null).map(([k, v]) => `${k} ${k.endsWith("bytes") ? size(v as number) : String(v)}`);
  const rows: [string, ComponentChildren][] = [
    ["Id", <CopyText value={s.id} />], ["Image", s.image], ["Runtime", s.runtime], ["Owner", s.owner], ["Tenant", s.tenant ?? "–"], ["Agent", s.agent ?? "–"],
    ["Limits", limits.join(", ") || text.common.none], ["Not enforced here", s.unenforced.join(", ") || text.common.none], ["Root", s.rootfs], ["Labels", Object.entries(s.labels).map(([k, v]) => `${k}=${v}`).join(", ") || "–"],
    ["Created", <Time at={s.created_at} />], ["Last used", <Time at={s.active_at} />],
  ];
  return (
    <>
      {s.warnings.map((w) => <p key={w} class="warning">{w}</p>)}
      <dl class="facts">{rows.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
    </>
  );
}

const TABS: Record<string, (s: Sandbox) => ComponentChildren> = {
  terminal: (s) => <Terminals of={s} />, commands: (s) => <Commands of={s} />, files: (s) => <Files of={s} />, network: (s) => <Network of={s} />, snapshots: (s) => <Snapshots of={s} />,
  changes: (s) => <Changes of={s} />, stats: (s) => <Stats of={s} />, events: (s) => <InstanceEvents of={s} />, overview: (s) => <Overview of={s} />,
};

export function InstancePage({ id }: { id: string }) {
  const all = need(sandboxes);
  const s = all?.get(id) ?? [...(all?.values() ?? [])].find((one) => one.name === id);
  const tab = place.value.path[2] ?? "terminal";
  useEffect(() => {
    if (all && !s) sandboxes.changed(id);
  }, [id, !!all]);
  if (!all) return <Loading />;
  if (!s) return <Empty>{text.instance.gone(id)}</Empty>;
  return (
    <>
      <header class="page-head">
        <h1><RuntimeBadge of={s.runtime} /> {nameOf(s)}</h1>
        <State of={s.state} />
        <InstanceActions of={s} />
      </header>
      {s.failure && <p class="problem" role="alert">{s.failure}</p>}
      <Tabs tabs={text.instance.tabs} current={tab} href={(t) => link("instances", s.id, t)} />
      {TABS[tab]?.(s)}
    </>
  );
}
