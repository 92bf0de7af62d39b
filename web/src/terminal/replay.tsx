// Plays the recording of a session: pause, speed, and a timeline to go anywhere.
import { useEffect, useRef, useState } from "preact/hooks";
import { callRaw, pathOf } from "../api/client";
import type { TerminalSession } from "../api/types";
import { duration } from "../parts/format";
import { text } from "../text";
import { countUntil, parseCast, type Cast } from "./cast";
import type { Screen } from "./screen";

const SPEEDS = [1, 2, 4, 16];
const TICK_MS = 50;
const MOST = "16m"; // bytes of a recording that are read into the page

/** What is on the screen, and how far it is: the terminal is started again only to go back. */
class Player {
  private done = 0;

  constructor(readonly cast: Cast, private readonly screen: Screen) {
    this.screen.term.resize(cast.cols, cast.rows);
  }

  show(at: number): void {
    const until = countUntil(this.cast, at);
    if (until < this.done) {
      this.screen.term.reset();
      this.screen.term.resize(this.cast.cols, this.cast.rows);
      this.done = 0;
    }
    for (const m of this.cast.moments.slice(this.done, until)) {
      if (m.kind === "o") this.screen.term.write(m.data);
      else {
        const [cols = 80, rows = 24] = m.data.split("x").map(Number);
        this.screen.term.resize(cols, rows);
      }
    }
    this.done = until;
  }
}

function usePlayer(session: TerminalSession, box: { current: HTMLDivElement | null }): [Player | undefined, string] {
  const [player, setPlayer] = useState<Player>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let screen: Screen | undefined;
    let stopped = false;
    const where = { id: session.sandbox, session: session.id };
    void Promise.all([import("./screen"), callRaw("sessionRecording", { ...where, limit: MOST } as never).then((r) => r.text())]).then(([{ Screen }, body]) => {
      if (stopped || !box.current) return;
      screen = new Screen(box.current, false, () => {}, false);
      screen.term.options.disableStdin = true;
      setPlayer(new Player(parseCast(body), screen));
    }, (e: Error) => setProblem(e.message));
    return () => {
      stopped = true;
      screen?.dispose();
    };
  }, [session.id]);
  return [player, problem];
}

export function Replay({ session, title, onClose }: { session: TerminalSession; title: string; onClose: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const [player, problem] = usePlayer(session, box);
  const [at, setAt] = useState(0);
  const [playing, play] = useState(true);
  const [speed, setSpeed] = useState(1);
  const length = player?.cast.length ?? 0;
  useEffect(() => player?.show(at), [player, at]);
  useEffect(() => {
    if (!playing || !player) return undefined;
    const timer = setInterval(() => setAt((now) => Math.min(now + (TICK_MS / 1000) * speed, length)), TICK_MS);
    return () => clearInterval(timer);
  }, [playing, player, speed]);
  const over = player !== undefined && at >= length;
  useEffect(() => {
    if (over) play(false);
  }, [over]);
  const toggle = () => {
    if (over) setAt(0);
    play(!playing);
  };
  const href = pathOf("sessionRecording", { id: session.sandbox, session: session.id });
  return (
    <section class="pane" aria-label={title}>
      <header class="pane-bar">
        <strong>{title}</strong>
        <button onClick={toggle}>{playing ? text.replay.pause : text.replay.play}</button>
        <input class="timeline" type="range" min={0} max={length} step="any" value={at} aria-label={text.replay.timeline} aria-valuetext={duration(Math.round(at * 1000))} onInput={(e) => setAt(Number(e.currentTarget.value))} />
        <span class="number">{duration(Math.round(at * 1000))} / {duration(Math.round(length * 1000))}</span>
        <select value={speed} aria-label={text.replay.speed} onChange={(e) => setSpeed(Number(e.currentTarget.value))}>{SPEEDS.map((s) => <option key={s} value={s}>{s}×</option>)}</select>
        <a href={href} download={`${session.name}.cast`}>{text.common.download}</a>
        <button class="quiet" aria-label={text.terminal.close} onClick={onClose}>✕</button>
      </header>
      {problem && <p class="problem" role="alert">{problem}</p>}
      <div class="pane-screen replay" ref={box} />
    </section>
  );
}
