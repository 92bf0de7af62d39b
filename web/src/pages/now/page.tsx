// The first page: what needs a person, then what runs.
import { agents, approvals, info, need, recent, sandboxes } from "../../live/store";
import { totals, useMeter } from "../../live/meter";
import { may } from "../../live/session";
import { Line } from "../../parts/chart";
import { percent, size } from "../../parts/format";
import { Ref } from "../../parts/ref";
import { CopyText, Empty, Loading, State, Time } from "../../parts/ui";
import { link } from "../../router";
import { text } from "../../text";
import { ApprovalCard } from "../approvals/card";
import { nameOf } from "../instances/actions";

function Counts() {
  const boxes = [...(sandboxes.items.value?.values() ?? [])];
  const count = (state: string) => boxes.filter((s) => s.state === state).length;
  const online = [...(agents.items.value?.values() ?? [])].filter((a) => a.status === "online" || a.status === "busy").length;
  const rows: [string, number, string][] = [
    [text.now.counts.running, count("running"), link("instances") + "?q=running"],
    [text.now.counts.paused, count("paused"), link("instances") + "?q=paused"],
    [text.now.counts.stopped, count("stopped"), link("instances") + "?q=stopped"],
    [text.now.counts.failed, count("failed"), link("instances") + "?q=failed"],
    [text.now.counts.commands, boxes.reduce((sum, s) => sum + s.execs_live, 0), link("instances")],
    [text.now.counts.agents, online, link("agents")],
  ];
  return <ul class="counts">{rows.map(([label, n, href]) => <li key={label}><a href={href}><strong>{n}</strong> {label}</a></li>)}</ul>;
}

const SLOTS = 450; // a quarter of an hour, as far as the page was open

function Load() {
  useMeter();
  const seen = totals.value;
  if (!seen.length) return null;
  return (
    <div class="lines">
      <Line label={`${text.stats.all}: ${text.stats.cpu}`} slots={SLOTS} values={seen.map((t) => t.cpus)} show={percent} />
      <Line label={`${text.stats.all}: ${text.stats.memory}`} slots={SLOTS} values={seen.map((t) => t.memory)} show={size} />
    </div>
  );
}

function Needs() {
  const pending = [...(approvals.items.value?.values() ?? [])].filter((a) => a.state === "pending").reverse();
  const failed = [...(sandboxes.items.value?.values() ?? [])].filter((s) => s.state === "failed" || s.state === "orphan");
  if (!pending.length && !failed.length) return <Empty>{text.now.nothing}</Empty>;
  return (
    <div class="cards">
      {pending.slice(0, 10).map((a) => <ApprovalCard key={a.id} of={a} />)}
      {failed.map((s) => (
        <article key={s.id} class="card">
          <h3><a href={link("instances", s.id)}>{text.now.failed(nameOf(s))}</a></h3>
          <p>{s.failure ?? s.state}</p>
        </article>
      ))}
    </div>
  );
}

function FirstSteps() {
  const server = location.origin;
  const commands = [
    "holt run -- python3 -c 'print(1)'",
    "holt create --name box && holt shell box",
    `curl -s -H "Authorization: Bearer $HOLT_TOKEN" -H 'content-type: application/json' -d '{"command": ["uname", "-a"]}' ${server}/holt/v1/run`,
  ];
  return <div class="first-steps"><p>{text.now.empty}</p>{commands.map((c) => <CopyText key={c} value={c} />)}</div>;
}

export function EventRows({ limit }: { limit: number }) {
  return (
    <table class="events">
      <tbody>
        {recent.value.slice(0, limit).map((e) => (
          <tr key={e.seq}><td><Time at={e.time} /></td><td><code>{e.type}</code></td><td><Ref to={e.object} /></td><td><Ref to={e.actor} /></td></tr>
        ))}
      </tbody>
    </table>
  );
}

export function NowPage() {
  const boxes = need(sandboxes);
  if (may("approvalList")) need(approvals);
  if (may("agentList")) need(agents);
  if (!boxes) return <Loading />;
  return (
    <>
      <h1>{text.now.title}</h1>
      <section aria-labelledby="needs"><h2 id="needs">{text.now.needs}</h2><Needs /></section>
      <section aria-labelledby="runs"><h2 id="runs">{text.now.runs}</h2>{boxes.size ? <><Counts /><Load /></> : <FirstSteps />}</section>
      <section aria-labelledby="newest"><h2 id="newest">{text.now.newest}</h2><EventRows limit={15} /></section>
      {info.value?.store_error && <p class="problem" role="alert">{info.value.store_error}</p>}
      {info.value && <p class="dim">holtd {info.value.version} · {info.value.store} · <State of="live" /> since <Time at={info.value.started_at} /></p>}
    </>
  );
}
