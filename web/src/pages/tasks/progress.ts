// What the output of a task has told so far, in a few words.
import type { TaskRun } from "../../api/types";
import { size } from "../../parts/format";
import { text } from "../../text";

interface Progress {
  output_bytes?: number;
  tool_calls?: number;
  current_tool?: string | null;
  input_tokens?: number;
  output_tokens?: number;
  cost_usd?: number | null;
}

export function progressOf(t: TaskRun): string {
  const p = (t.progress ?? {}) as Progress;
  const tokens = (p.input_tokens ?? 0) + (p.output_tokens ?? 0);
  return [
    p.current_tool && !t.ended_at ? p.current_tool : "",
    p.tool_calls ? text.tasks.toolCalls(p.tool_calls) : "",
    tokens ? text.tasks.tokens(tokens) : "",
    p.cost_usd ? `$${p.cost_usd.toFixed(2)}` : "",
    p.output_bytes ? size(p.output_bytes) : "",
  ].filter(Boolean).join(" · ");
}
