// Changes: what differs, playbooks made of it, and their way to production.
import type { ComponentChildren } from "preact";
import { Tabs } from "../../parts/ui";
import { link, place } from "../../router";
import { text } from "../../text";
import { Compare } from "./compare";
import { PlaybookPage, Playbooks } from "./playbooks";
import { RolloutPage, Rollouts } from "./rollouts";
import { Targets } from "./targets";

const PAGES: Record<string, (id: string | undefined) => ComponentChildren> = {
  compare: () => <Compare />,
  playbooks: (id) => (id ? <PlaybookPage id={id} /> : <Playbooks />),
  rollouts: (id) => (id ? <RolloutPage id={id} /> : <Rollouts />),
  targets: () => <Targets />,
};

export function ChangesPage() {
  const [, tab = "compare", id] = place.value.path;
  return (
    <>
      <h1>{text.nav.changes}</h1>
      <Tabs tabs={text.changes.tabs} current={tab} href={(t) => link("changes", t)} />
      {PAGES[tab]?.(id)}
    </>
  );
}
