// The team: who is there, how far each may go alone, and who writes to whom.
import { useEffect, useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Agent, Event, MessageEdge } from "../../api/types";
import { may } from "../../live/session";
import { agents, info, need, recent } from "../../live/store";
import { act } from "../../parts/notices";
import { Confirm, Empty, Loaded, State, Tabs, Time } from "../../parts/ui";
import { link, place } from "../../router";
import { text } from "../../text";
import { FlowGraph } from "./graph";

type Mode = Agent["mode"];

function ModeSelect({ value, label, onChange }: { value: Mode; label: string; onChange: (mode: Mode) => void }) {
  return (
    <select value={value} aria-label={label} disabled={!may("agentUpdate")} onChange={(e) => onChange(e.currentTarget.value as Mode)}>
      {Object.entries(text.agents.modes).map(([id, name]) => <option key={id} value={id}>{name}</option>)}
    </select>
  );
}

function Row({ of: a }: { of: Agent }) {
  const [asking, ask] = useState(false);
  const name = a.name;
  const run = (what: string, work: () => Promise<unknown>) => void act(`${what} ${name}`, work).then(() => agents.changed(name));
  const stopped = a.status === "paused" || a.status === "revoked";
  return (
    <tr>
      <td><strong>{name}</strong> <span class="dim">{a.type}</span></td>
      <td><State of={a.status} /></td>
      <td><ModeSelect value={a.mode} label={`${text.agents.mode}: ${name}`} onChange={(mode) => run(text.agents.mode, () => call("agentUpdate", { name }, { mode }))} /></td>
      <td>{a.capabilities.join(", ")}</td>
      <td><Time at={a.heartbeat_at} /></td>
      <td class="number">{a.checkpoint_sequence}</td>
      <td class="actions">
        {may("agentPause") && !stopped && <button onClick={() => run(text.agents.pause, () => call("agentPause", { name }, {}))}>{text.agents.pause}</button>}
        {may("agentResume") && stopped && <button onClick={() => run(text.agents.resume, () => call("agentResume", { name }))}>{text.agents.resume}</button>}
        {may("agentRevoke") && a.status !== "revoked" && <button class="danger" onClick={() => ask(true)}>{text.agents.revoke}</button>}
        {asking && <Confirm question={text.agents.revokeAsk(name)} verb={text.agents.revoke} onClose={() => ask(false)} onYes={() => run(text.agents.revoke, () => call("agentRevoke", { name }, { flush: true, stop: true }))} />}
      </td>
    </tr>
  );
}

function AgentTable() {
  const all = need(agents);
  return (
    <Loaded items={all && [...all.values()]} error={agents.error.value} empty={text.agents.none}>
      {(items) => (
        <table>
          <thead><tr>{[text.instance.name, "Status", text.agents.mode, text.agents.capabilities, text.agents.heartbeat, "Checkpoint", ""].map((h) => <th key={h} scope="col">{h}</th>)}</tr></thead>
          <tbody>{items.map((a) => <Row key={a.name} of={a} />)}</tbody>
        </table>
      )}
    </Loaded>
  );
}

const LOOK_BACK = 5000; // events

/** Messages are events: those of the last while are read once, newer ones arrive by themselves. */
function useMessages(): readonly Event[] {
  const [old, setOld] = useState<readonly Event[]>([]);
  useEffect(() => {
    const since = Math.max(0, (info.value?.event_seq ?? 0) - LOOK_BACK);
    call("eventList", { type: "message.sent", since, limit: 1000 }).then((r) => setOld([...r.events].reverse()), () => {});
  }, []);
  const fresh = recent.value.filter((e) => e.type === "message.sent" && e.seq > (old[0]?.seq ?? 0));
  return [...fresh, ...old];
}

function MessageRow({ of: e }: { of: Event }) {
  const m = e.data as Record<"from" | "to" | "type" | "content", string>;
  return <li><Time at={e.time} /> <strong>{m.from}</strong> → <strong>{m.to}</strong> <span class="badge">{m.type}</span> <span class="plain">{m.content}</span></li>;
}

function Messages() {
  const [edges, setEdges] = useState<MessageEdge[]>();
  const feed = useMessages();
  useEffect(() => {
    call("messageGraph", {}).then((r) => setEdges(r.edges), () => setEdges([]));
  }, [feed[0]?.seq]);
  return (
    <>
      <h2>{text.agents.graph}</h2>
      {edges?.length ? <FlowGraph edges={edges} /> : <Empty>{text.common.none}</Empty>}
      <h2>{text.agents.feed}</h2>
      {feed.length ? <ul class="feed">{feed.map((e) => <MessageRow key={e.seq} of={e} />)}</ul> : <Empty>{text.common.none}</Empty>}
    </>
  );
}

export function AgentsPage() {
  const tab = place.value.path[1] ?? "agents";
  const [mode, setMode] = useState<Mode>("fully_autonomous");
  return (
    <>
      <header class="page-head">
        <h1>{text.agents.title}</h1>
        {may("agentDefaultMode") && (
          <span class="actions">{text.agents.everyone} <ModeSelect value={mode} label={text.agents.everyone} onChange={setMode} />
            <button onClick={() => void act(text.agents.everyone, () => call("agentDefaultMode", {}, { mode })).then(() => agents.load())}>{text.common.save}</button></span>
        )}
      </header>
      <Tabs tabs={{ agents: text.agents.title, messages: text.agents.messages }} current={tab} href={(t) => link("agents", t)} />
      {tab === "agents" ? <AgentTable /> : <Messages />}
    </>
  );
}
