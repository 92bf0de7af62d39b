// The frame of the dashboard: navigation, the live list of instances, the page, and what is behind.
import { useEffect, useRef } from "preact/hooks";
import { logIn, logOut, may, self } from "./live/session";
import { approvals, asOf, connection, need } from "./live/store";
import type { OperationName } from "./api/client";
import { notifyDesktop } from "./parts/desktop";
import { KeyDialogs, paletteOpen } from "./parts/keys";
import { Notices } from "./parts/notices";
import { chooseTheme, theme, type Theme } from "./parts/theme";
import { link, place } from "./router";
import { text } from "./text";
import { AgentsPage } from "./pages/agents/page";
import { ApprovalsPage } from "./pages/approvals/page";
import { BoardPage } from "./pages/board/page";
import { ChangesPage } from "./pages/changes/page";
import { EventsPage } from "./pages/events/page";
import { InstancePage } from "./pages/instance/page";
import { CreateDialog } from "./pages/instances/create";
import { InstancesPage } from "./pages/instances/page";
import { InstanceList } from "./pages/instances/sidebar";
import { LoginPage } from "./pages/login/page";
import { NowPage } from "./pages/now/page";
import { SettingsPage } from "./pages/settings/page";
import { TasksPage } from "./pages/tasks/page";
import { TerminalsPage } from "./pages/terminals/page";
import { ThingsPage } from "./pages/things/page";

function Page() {
  const [first = "now", second] = place.value.path;
  if (first === "instances" && second && second !== "new") return <InstancePage id={second} />;
  switch (first) {
    case "instances": return <InstancesPage />;
    case "terminals": return <TerminalsPage />;
    case "approvals": return <ApprovalsPage />;
    case "changes": return <ChangesPage />;
    case "tasks": return <TasksPage />;
    case "board": return <BoardPage />;
    case "agents": return <AgentsPage />;
    case "events": return <EventsPage />;
    case "things": return <ThingsPage />;
    case "settings": return <SettingsPage />;
    default: return <NowPage />;
  }
}

function waiting(): number {
  return [...(approvals.items.value?.values() ?? [])].filter((a) => a.state === "pending").length;
}

/** The operation without which a page would be empty. */
const NEEDS: Record<string, OperationName> = { approvals: "approvalList", changes: "changeDiff", tasks: "taskRunList", board: "projectList", agents: "agentList", events: "eventList", settings: "settingsList" };

function mayOpen(page: string): boolean {
  const operation = NEEDS[page];
  return !operation || may(operation);
}

function Navigation() {
  const current = place.value.path[0] ?? "now";
  const count = waiting();
  return (
    <nav class="main-nav" aria-label="Pages">
      {Object.entries(text.nav).filter(([id]) => mayOpen(id)).map(([id, label]) => (
        <a key={id} href={link(id)} aria-current={id === current ? "page" : undefined}>
          {label}
          {id === "approvals" && count > 0 && <span class="count" aria-label={text.now.pending(count)}>{count}</span>}
        </a>
      ))}
    </nav>
  );
}

function LinkState() {
  const state = connection.value;
  const words = state === "lost" ? text.link.lost(asOf.value.toLocaleTimeString()) : text.link[state];
  return <p class={`link link-${state}`} role="status">{words}</p>;
}

function Account() {
  return (
    <div class="account">
      <span title={self.value?.actor}>{self.value?.name ?? self.value?.actor} · {self.value?.role}</span>
      <label>
        <span class="hidden">{text.common.theme}</span>
        <select value={theme.value} onChange={(e) => chooseTheme(e.currentTarget.value as Theme)}>
          <option value="system">{text.common.system}</option>
          <option value="dark">{text.common.dark}</option>
          <option value="light">{text.common.light}</option>
        </select>
      </label>
      <button class="quiet" onClick={() => { paletteOpen.value = true; }} title="Ctrl+K">⌘K</button>
      {self.value?.id && <button class="quiet" onClick={() => void logOut()}>{text.common.logout}</button>}
    </div>
  );
}

export function App() {
  useEffect(() => void logIn(), []);
  const count = waiting();
  const before = useRef(0);
  useEffect(() => {
    document.title = count ? `(${count}) holt` : "holt";
    if (count > before.current) notifyDesktop(count);
    before.current = count;
  }, [count]);
  if (!self.value) return <LoginPage />;
  if (may("approvalList")) need(approvals);
  return (
    <div class="frame">
      <a class="skip" href="#content" onClick={(e) => { e.preventDefault(); document.getElementById("content")?.focus(); }}>{text.skip}</a>
      <aside class="sidebar">
        <header>
          <a class="brand" href={link("now")}>{text.product}</a>
          {may("sandboxCreate") && <a class="button primary" href={link("instances", "new")}>{text.instance.create}</a>}
        </header>
        <Navigation />
        <InstanceList />
        <Account />
      </aside>
      <main id="content" tabIndex={-1}>
        <LinkState />
        <Page />
      </main>
      {place.value.path[1] === "new" && place.value.path[0] === "instances" && <CreateDialog />}
      <KeyDialogs />
      <Notices />
    </div>
  );
}
