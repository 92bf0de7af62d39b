// The attach protocol (docs/protocol-attach.md): output with offsets, so that a connection that was cut goes on without loss.
import { signal, type Signal } from "@preact/signals";
import { socketUrl } from "../api/client";
import type { Exec } from "../api/types";

export type Role = "observer" | "controller";
export type AttachState = "connecting" | "live" | "lost" | "ended";

const RETRY_MS = [250, 500, 1000, 2000];
const HEADER = 9; // stream, then the offset in 8 bytes

export class Attach {
  readonly state: Signal<AttachState> = signal("connecting");
  readonly role: Signal<Role> = signal("observer");
  readonly exec: Signal<Exec | undefined> = signal(undefined);
  readonly note: Signal<string> = signal("");
  onOutput: (bytes: Uint8Array) => void = () => {};
  onBack: () => void = () => {};
  onGap: (bytes: number) => void = () => {};
  private socket: WebSocket | undefined;
  private tries = 0;
  private closed = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly sandbox: string, private readonly id: string, private wanted: Role, private offset = 0) {
    this.connect(false);
  }

  private connect(take: boolean): void {
    const args = { id: this.sandbox, exec: this.id, role: this.wanted, stdout_offset: this.offset, ...(take ? { take: true } : {}) };
    const socket = new WebSocket(socketUrl("execAttach", args), "holt.attach.v1");
    socket.binaryType = "arraybuffer";
    socket.onmessage = (m) => (typeof m.data === "string" ? this.onText(m.data) : this.onBytes(m.data as ArrayBuffer));
    socket.onclose = (e) => this.onClose(socket, e.code);
    this.socket = socket;
  }

  private onBytes(data: ArrayBuffer): void {
    const bytes = new Uint8Array(data, HEADER);
    this.offset = Number(new DataView(data).getBigUint64(1)) + bytes.length;
    this.onOutput(bytes);
  }

  private onText(data: string): void {
    const m = JSON.parse(data) as { type: string; role?: Role; exec?: Exec; from?: number; to?: number; error?: { message: string } };
    if (m.type === "started") this.onStarted(m.exec);
    else if (m.type === "role" && m.role) this.role.value = m.role;
    else if (m.type === "gap") this.onGap((m.to ?? 0) - (m.from ?? 0));
    else if (m.type === "error") this.note.value = m.error?.message ?? "";
    else if (m.type === "exit") {
      this.exec.value = m.exec;
      this.state.value = "ended";
    }
  }

  private onStarted(exec: Exec | undefined): void {
    this.exec.value = exec;
    if (this.state.value === "lost") this.onBack();
    this.state.value = "live";
    this.tries = 0;
  }

  private onClose(socket: WebSocket, code: number): void {
    if (this.closed || socket !== this.socket || this.state.value === "ended") return;
    if (code === 1000 && this.exec.value?.ended_at) return;
    this.state.value = "lost";
    // Somebody else may be the controller by now: come back as an observer then.
    if (this.tries > 0 && this.wanted === "controller") this.wanted = "observer";
    this.timer = setTimeout(() => this.connect(false), RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)]);
  }

  get where(): { id: string; exec: string } {
    return { id: this.sandbox, exec: this.id };
  }

  type(data: string): void {
    if (this.role.value !== "controller" || this.socket?.readyState !== WebSocket.OPEN) return;
    const bytes = new TextEncoder().encode(data);
    const frame = new Uint8Array(bytes.length + 1);
    frame.set(bytes, 1);
    this.socket.send(frame);
  }

  resize(rows: number, cols: number): void {
    if (this.role.value === "controller") this.send({ type: "resize", rows, cols });
  }

  private send(message: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  /** Connects again in the other role, or from another offset. */
  again(role: Role, offset = this.offset): void {
    this.wanted = role;
    this.offset = offset;
    const old = this.socket;
    this.connect(role === "controller");
    old?.close(1000);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close(1000);
  }
}
