// Made from api/openapi.json by web/tools/make-types.mjs.  Not to be edited.
export type ServerInfo = { "name": string; "version": string; "started_at": string; "uptime_ms": number; "listen": (string)[]; "auth": "token" | "off"; "store": string; "store_error": string | null; "connections": number; "event_seq": number; "event_hash": string; };
export type Setting = { "key": string; "value": string | number | boolean | unknown[] | null; "default": string; "source": string; "reloadable": boolean; "text": string; };
export type SettingList = { "settings": (Setting)[]; "cursor": string | null; };
export type Health = { "status": string; };
export type Readiness = { "status": "ready" | "not_ready"; "ready": boolean; "agent_count": number; "reason": string; };
export type Description = { "openapi": string; "info": Record<string, unknown>; "paths": Record<string, unknown>; "components": Record<string, unknown>; };
export type TokenCreateInput = { "name": string; "role"?: "observer" | "agent" | "operator" | "admin" | null; "agent"?: string | null; "ttl_ms"?: number | string | null; "tenant"?: string | null; "person"?: string | null; "content"?: boolean | null; };
export type NewToken = { "id": string; "name": string; "role": "observer" | "agent" | "operator" | "admin"; "agent": string | null; "tenant": string | null; "person": string | null; "content": boolean; "created_at": string; "expires_at": string | null; "last_used_at": string | null; "token": string; };
export type Token = { "id": string; "name": string; "role": "observer" | "agent" | "operator" | "admin"; "agent": string | null; "tenant": string | null; "person": string | null; "content": boolean; "created_at": string; "expires_at": string | null; "last_used_at": string | null; };
export type TokenList = { "tokens": (Token)[]; "cursor": string | null; };
export type Self = { "actor": string; "role": "observer" | "agent" | "operator" | "admin"; "id": string | null; "name": string | null; "agent": string | null; "tenant": string | null; "person": string | null; "expires_at": string | null; "permissions": (string)[]; };
export type Event = { "seq": number; "time": string; "type": string; "object": string; "actor": string; "data": Record<string, unknown>; "audit": boolean; "count": number; "hash": string; };
export type EventList = { "events": (Event)[]; "cursor": string | null; };
export type AuditResult = { "ok": boolean; "first_seq": number; "last_seq": number; "checked": number; "head": string; "broken_seq": number | null; "broken_why": string | null; "head_found": boolean | null; "head_seq": number | null; };
export type LoginInput = { "code": string; };
export type Session = { "role": "observer" | "agent" | "operator" | "admin"; };
export type LoginCodeInput = { "role"?: "observer" | "agent" | "operator" | "admin" | null; };
export type LoginLink = { "url": string; "code": string; "role": "observer" | "agent" | "operator" | "admin"; };
export type SandboxCreateInput = { "name"?: string | null; "template"?: string | null; "image"?: string | null; "runtime"?: string | null; "tenant"?: string | null; "memory_bytes"?: number | string | null; "cpu_millis"?: number | null; "pids"?: number | null; "disk_bytes"?: number | string | null; "nofile"?: number | null; "nesting"?: boolean | null; "relay"?: boolean | null; "process_api"?: boolean | null; "hub"?: boolean | null; "rootfs"?: "rw" | "ro" | null; "upper"?: "disk" | "memory" | null; "network"?: string | Record<string, unknown> | null; "allow"?: (string)[] | null; "syscalls"?: "narrow" | "wide" | null; "require_limits"?: boolean | null; "agent"?: string | null; "labels"?: Record<string, string> | null; "mounts"?: unknown[] | null; "volumes"?: unknown[] | null; "secrets"?: unknown[] | null; "secret"?: (string)[] | null; "ttl_ms"?: number | string | null; "idle_ttl_ms"?: number | string | null; "protected"?: boolean | null; "env"?: Record<string, string> | null; };
export type Sandbox = { "id": string; "name": string | null; "aliases": unknown[]; "state": "creating" | "running" | "paused" | "stopping" | "stopped" | "starting" | "failed" | "destroyed" | "orphan"; "image": string; "runtime": string; "tenant": string | null; "owner": string; "network": Record<string, unknown>; "limits": Record<string, unknown>; "unenforced": (string)[]; "warnings": (string)[]; "nesting": boolean; "syscalls": "narrow" | "wide"; "rootfs": "rw" | "ro"; "upper": "disk" | "memory"; "relay": boolean; "process_api": boolean; "hub": boolean; "protected": boolean; "ttl_ms": number | null; "idle_ttl_ms": number | null; "agent": string | null; "labels": Record<string, string>; "mounts": unknown[]; "volumes": unknown[]; "secrets": unknown[]; "execs_live": number; "created_at": string; "started_at": string | null; "ended_at": string | null; "active_at": string | null; "failure": string | null; };
export type SandboxList = { "sandboxes": (Sandbox)[]; "cursor": string | null; };
export type SandboxUpdateInput = { "name"?: string | null; "labels"?: Record<string, unknown> | null; "ttl_ms"?: number | string | null; "idle_ttl_ms"?: number | string | null; "protected"?: boolean | null; "network"?: string | Record<string, unknown> | null; };
export type SandboxStopInput = { "grace_ms"?: number | string | null; "force"?: boolean | null; };
export type SandboxRestartInput = { "grace_ms"?: number | string | null; "force"?: boolean | null; };
export type SandboxStats = { "id": string; "memory_bytes": number; "memory_peak_bytes": number; "cpu_us": number; "pids": number; "oom_kills": number; "disk_bytes": number; "net_rx_bytes": number; "net_tx_bytes": number; };
export type RunInput = { "name"?: string | null; "command"?: unknown[] | string | null; "cwd"?: string | null; "env"?: Record<string, string> | null; "user"?: string | null; "timeout_ms"?: number | string | null; "stdin"?: string | null; "stdin_base64"?: string | null; "stdin_open"?: boolean | null; "pty"?: boolean | Record<string, unknown> | null; "merge"?: boolean | null; "kill_rest"?: boolean | null; "output_bytes"?: number | string | null; "on_full"?: "drop" | "block" | null; "template"?: string | null; "image"?: string | null; "runtime"?: string | null; "tenant"?: string | null; "memory_bytes"?: number | string | null; "cpu_millis"?: number | null; "pids"?: number | null; "disk_bytes"?: number | string | null; "nofile"?: number | null; "nesting"?: boolean | null; "relay"?: boolean | null; "process_api"?: boolean | null; "hub"?: boolean | null; "rootfs"?: "rw" | "ro" | null; "upper"?: "disk" | "memory" | null; "network"?: string | Record<string, unknown> | null; "allow"?: (string)[] | null; "syscalls"?: "narrow" | "wide" | null; "require_limits"?: boolean | null; "agent"?: string | null; "labels"?: Record<string, string> | null; "mounts"?: unknown[] | null; "volumes"?: unknown[] | null; "secrets"?: unknown[] | null; "secret"?: (string)[] | null; };
export type RunResult = { "id": string; "sandbox": string; "state": "starting" | "running" | "exited" | "failed" | "lost"; "command": (string)[]; "cwd": string | null; "user": string | null; "pty": boolean; "exit_code": number | null; "signal": number | null; "timed_out": boolean; "cancelled": boolean; "oom": boolean; "created_at": string; "started_at": string | null; "ended_at": string | null; "duration_ms": number | null; "stdout_bytes": number; "stderr_bytes": number; "usage": Record<string, unknown> | null; "failure": string | null; "stdout": string | null; "stderr": string | null; "stdout_base64": string | null; "stderr_base64": string | null; "truncated": boolean; "stdout_omitted": number; "stderr_omitted": number; "warnings": (string)[]; };
export type ExecCreateInput = { "command"?: unknown[] | string | null; "cwd"?: string | null; "env"?: Record<string, string> | null; "user"?: string | null; "timeout_ms"?: number | string | null; "stdin"?: string | null; "stdin_base64"?: string | null; "stdin_open"?: boolean | null; "pty"?: boolean | Record<string, unknown> | null; "merge"?: boolean | null; "kill_rest"?: boolean | null; "output_bytes"?: number | string | null; "on_full"?: "drop" | "block" | null; "background"?: boolean | null; "cancel_on_disconnect"?: boolean | null; };
export type ExecResult = { "id": string; "sandbox": string; "state": "starting" | "running" | "exited" | "failed" | "lost"; "command": (string)[]; "cwd": string | null; "user": string | null; "pty": boolean; "exit_code": number | null; "signal": number | null; "timed_out": boolean; "cancelled": boolean; "oom": boolean; "created_at": string; "started_at": string | null; "ended_at": string | null; "duration_ms": number | null; "stdout_bytes": number; "stderr_bytes": number; "usage": Record<string, unknown> | null; "failure": string | null; "stdout": string | null; "stderr": string | null; "stdout_base64": string | null; "stderr_base64": string | null; "truncated": boolean; "stdout_omitted": number; "stderr_omitted": number; };
export type Exec = { "id": string; "sandbox": string; "state": "starting" | "running" | "exited" | "failed" | "lost"; "command": (string)[]; "cwd": string | null; "user": string | null; "pty": boolean; "exit_code": number | null; "signal": number | null; "timed_out": boolean; "cancelled": boolean; "oom": boolean; "created_at": string; "started_at": string | null; "ended_at": string | null; "duration_ms": number | null; "stdout_bytes": number; "stderr_bytes": number; "usage": Record<string, unknown> | null; "failure": string | null; };
export type ExecList = { "execs": (Exec)[]; "cursor": string | null; };
export type ExecSignalInput = { "signal": string; };
export type ExecResizeInput = { "rows": number; "cols": number; };
export type Screen = { "rows": number; "cols": number; "cursor": Record<string, unknown>; "alternate": boolean; "reverse": boolean; "title": string; "history": number; "forgotten": number; "offset": number; "complete": boolean; "text": string; "lines"?: unknown[]; };
export type SessionCreateInput = { "name"?: string | null; "command"?: unknown[] | string | null; "cwd"?: string | null; "env"?: Record<string, string> | null; "user"?: string | null; "timeout_ms"?: number | string | null; "output_bytes"?: number | string | null; "rows"?: number | null; "cols"?: number | null; };
export type TerminalSession = { "id": string; "name": string; "sandbox": string; "state": "starting" | "running" | "exited" | "failed" | "lost"; "command": (string)[]; "rows": number; "cols": number; "controller": string | null; "members": number; "output_bytes": number; "exit_code": number | null; "created_at": string; "ended_at": string | null; };
export type TerminalSessionList = { "sessions": (TerminalSession)[]; "cursor": string | null; };
export type SessionMember = { "name": string; "by": string; "role": "observer" | "controller"; "since": string; };
export type SessionMemberList = { "members": (SessionMember)[]; "cursor": string | null; };
export type SessionSendInput = { "text"?: string | null; "keys"?: (string)[] | null; "take"?: boolean | null; };
export type SessionResizeInput = { "rows": number; "cols": number; };
export type SessionMatch = { "offset": number; "time": string; "line": string; };
export type SessionMatchList = { "matches": (SessionMatch)[]; "cursor": string | null; };
export type File = { "name": string; "kind": "file" | "directory" | "symlink" | "fifo" | "socket" | "character" | "block" | "unknown"; "size": number; "mode": string; "uid": number; "gid": number; "modified_at": string | null; "link": string | null; };
export type FileList = { "files": (File)[]; "cursor": string | null; };
export type FileMkdirInput = { "path": string; "mode"?: string | null; "parents"?: boolean | null; };
export type FileMoveInput = { "from": string; "to": string; };
export type Image = { "id": string; "name": string; "owner": string | null; "tenant": string | null; "state": "working" | "ready" | "failed"; "source": string; "digest": string | null; "os": string; "arch": string; "layers": number; "size_bytes": number; "created_at": string | null; "defaults": Record<string, unknown>; "phase": string | null; "done_bytes": number; "total_bytes": number; "failure": string | null; };
export type ImageList = { "images": (Image)[]; "cursor": string | null; };
export type ImagePullInput = { "ref": string; "name"?: string | null; "wait"?: boolean | null; };
export type SshAuthority = { "public_key": string; };
export type AccessRequestInput = { "public_key": string; "sandbox"?: string | null; "principals"?: (string)[] | null; "ttl_ms"?: number | string | null; };
export type NewCertificate = { "id": string; "serial": number; "state": "active" | "expired" | "revoked"; "owner": string; "tenant": string | null; "sandbox": string | null; "principals": (string)[]; "fingerprint": string; "created_at": string; "expires_at": string; "revoked_at": string | null; "reason": string | null; "certificate": string; };
export type Certificate = { "id": string; "serial": number; "state": "active" | "expired" | "revoked"; "owner": string; "tenant": string | null; "sandbox": string | null; "principals": (string)[]; "fingerprint": string; "created_at": string; "expires_at": string; "revoked_at": string | null; "reason": string | null; };
export type CertificateList = { "certificates": (Certificate)[]; "cursor": string | null; };
export type TemplateCreateInput = { "name": string; "pool"?: number | null; "shared"?: boolean | null; "template"?: string | null; "image"?: string | null; "runtime"?: string | null; "tenant"?: string | null; "memory_bytes"?: number | string | null; "cpu_millis"?: number | null; "pids"?: number | null; "disk_bytes"?: number | string | null; "nofile"?: number | null; "nesting"?: boolean | null; "relay"?: boolean | null; "process_api"?: boolean | null; "hub"?: boolean | null; "rootfs"?: "rw" | "ro" | null; "upper"?: "disk" | "memory" | null; "network"?: string | Record<string, unknown> | null; "allow"?: (string)[] | null; "syscalls"?: "narrow" | "wide" | null; "require_limits"?: boolean | null; "agent"?: string | null; "labels"?: Record<string, string> | null; "mounts"?: unknown[] | null; "volumes"?: unknown[] | null; "secrets"?: unknown[] | null; "secret"?: (string)[] | null; "ttl_ms"?: number | string | null; "idle_ttl_ms"?: number | string | null; "protected"?: boolean | null; "env"?: Record<string, string> | null; };
export type Template = { "id": string; "name": string; "tenant": string | null; "owner": string; "shared": boolean; "pool": number; "fields": Record<string, unknown>; "warnings": (string)[]; "created_at": string; };
export type TemplateList = { "templates": (Template)[]; "cursor": string | null; };
export type VolumeCreateInput = { "name": string; "tenant"?: string | null; "kind"?: "disk" | "tmpfs" | null; "size_bytes"?: number | string | null; "shared"?: boolean | null; };
export type Volume = { "id": string; "name": string; "tenant": string | null; "kind": "disk" | "tmpfs"; "owner": string; "shared": boolean; "size_bytes": number | null; "used_bytes": number | null; "used_by": number; "created_at": string; };
export type VolumeList = { "volumes": (Volume)[]; "cursor": string | null; };
export type VolumeUpdateInput = { "tenant"?: string | null; "shared": boolean; };
export type SecretCreateInput = { "name": string; "value": string; "hosts"?: (string)[] | null; "methods"?: (string)[] | null; "path"?: string | null; "in"?: (string)[] | null; "plain"?: boolean | null; };
export type Secret = { "id": string; "name": string; "hosts": (string)[]; "methods": (string)[] | null; "path": string | null; "in": (string)[]; "plain": boolean; "owner": string; "tenant": string | null; "used_by": number; "created_at": string; "updated_at": string; "rotated_at": string; };
export type SecretSetInput = { "value"?: string | null; "hosts"?: (string)[] | null; "methods"?: (string)[] | null; "path"?: string | null; "in"?: (string)[] | null; "plain"?: boolean | null; };
export type SecretList = { "secrets": (Secret)[]; "cursor": string | null; };
export type Rule = { "id": string; "allow": boolean; "host": string; "port": number; "sandbox": string | null; "tenant": string | null; "created_by": string; "created_at": string; };
export type RuleList = { "rules": (Rule)[]; "cursor": string | null; };
export type PortPreviewInput = { "port": number; };
export type PreviewLink = { "url": string; "origin": string; "expires_at": string; };
export type AgentRegisterInput = { "name": string; "type"?: string | null; "mode"?: "manual" | "advisory" | "fully_autonomous" | null; "capabilities"?: (string)[] | null; "max_tasks"?: number | null; "metadata"?: Record<string, unknown> | null; };
export type NewAgent = { "name": string; "type": string; "description": string; "status": "offline" | "online" | "busy" | "stalled" | "paused" | "revoked"; "mode": "manual" | "advisory" | "fully_autonomous"; "mode_max": "manual" | "advisory" | "fully_autonomous"; "capabilities": (string)[]; "max_tasks": number; "task_id": string | null; "checkpoint_sequence": number; "metadata": Record<string, unknown>; "registered_at": string; "heartbeat_at": string; "token"?: string | null; };
export type Agent = { "name": string; "type": string; "description": string; "status": "offline" | "online" | "busy" | "stalled" | "paused" | "revoked"; "mode": "manual" | "advisory" | "fully_autonomous"; "mode_max": "manual" | "advisory" | "fully_autonomous"; "capabilities": (string)[]; "max_tasks": number; "task_id": string | null; "checkpoint_sequence": number; "metadata": Record<string, unknown>; "registered_at": string; "heartbeat_at": string; };
export type AgentList = { "agents": (Agent)[]; "cursor": string | null; };
export type AgentUpdateInput = { "mode"?: "manual" | "advisory" | "fully_autonomous" | null; "capabilities"?: (string)[] | null; "clear_capabilities"?: boolean | null; "description"?: string | null; "max_tasks"?: number | null; };
export type Heartbeat = { "ticks": number; "status": "offline" | "online" | "busy" | "stalled" | "paused" | "revoked"; };
export type AgentDefaultModeInput = { "mode": "manual" | "advisory" | "fully_autonomous"; "type"?: string | null; };
export type DefaultMode = { "mode": "manual" | "advisory" | "fully_autonomous"; "agents": (string)[]; };
export type AgentCheckpointInput = { "state"?: string | null; "rationale"?: string | null; "task_id"?: string | null; "metadata"?: Record<string, unknown> | null; };
export type Checkpoint = { "id": string; "agent": string; "sequence": number; "task_id": string | null; "state": string; "rationale": string; "metadata": Record<string, unknown>; "created_at": string; };
export type CheckpointList = { "checkpoints": (Checkpoint)[]; "cursor": string | null; };
export type AgentPauseInput = { "reason"?: string | null; };
export type AgentRevokeInput = { "reason"?: string | null; "flush"?: boolean | null; "stop"?: boolean | null; };
export type Revocation = { "id": string; "agent": string; "reason": string; "flush": boolean; "issued_by": string; "issued_at": string; "acknowledged_at": string | null; };
export type PendingRevocation = { "pending": boolean; "id": string | null; "reason": string | null; "flush": boolean | null; };
export type AgentAckInput = { "id"?: string | null; };
export type Acknowledged = { "ended": number; };
export type RevocationList = { "revocations": (Revocation)[]; "cursor": string | null; };
export type ProjectCreateInput = { "name": string; "creator"?: string | null; };
export type Project = { "id": string; "name": string; "creator": string; "members": (string)[]; "limits": Record<string, unknown>; "created_at": string; };
export type ProjectList = { "projects": (Project)[]; "cursor": string | null; };
export type ProjectJoinInput = { "agent": string; };
export type ProjectLimitInput = { "status": "backlog" | "ready" | "in_progress" | "in_review" | "blocked" | "done"; "cards": number; };
export type BoardMetrics = { "total": number; "by_status": Record<string, unknown>; "completed": number; "cycle_avg_ms": number; "cycle_p50_ms": number; "cycle_p90_ms": number; "cycle_p99_ms": number; "agents": Record<string, unknown> | unknown[]; };
export type ProjectFile = { "path": string; "version": number; "checksum": string; "size_bytes": number; "uploader": string; "created_at": string; };
export type ProjectFileList = { "files": (ProjectFile)[]; "cursor": string | null; };
export type TaskCreateInput = { "project": string; "title": string; "description"?: string | null; "priority"?: "P0" | "P1" | "P2" | "P3" | null; "assigned_to"?: string | null; "capabilities"?: (string)[] | null; "reviews"?: number | null; "parent"?: string | null; "created_by"?: string | null; };
export type Task = { "id": string; "project": string; "title": string; "description": string; "status": "backlog" | "ready" | "in_progress" | "in_review" | "blocked" | "done"; "priority": "P0" | "P1" | "P2" | "P3"; "assigned_to": string | null; "claimed_by": string | null; "capabilities": (string)[]; "blocked_reason": string | null; "blocked_by": string | null; "parent": string | null; "subtasks": (string)[]; "reviewers": (string)[]; "reviews": number; "created_by": string; "created_at": string; "updated_at": string; "started_at": string | null; "review_started_at": string | null; "completed_at": string | null; };
export type TaskList = { "tasks": (Task)[]; "cursor": string | null; };
export type TaskStep = { "from": "backlog" | "ready" | "in_progress" | "in_review" | "blocked" | "done"; "to": "backlog" | "ready" | "in_progress" | "in_review" | "blocked" | "done"; "by": string; "note": string; "at": string; };
export type TaskStepList = { "moves": (TaskStep)[]; "cursor": string | null; };
export type TaskClaimInput = { "agent": string; };
export type TaskChange = { "task": Record<string, unknown>; "approval": string | null; };
export type TaskAssignInput = { "agent": string; };
export type TaskMoveInput = { "status": "backlog" | "ready" | "in_progress" | "in_review" | "blocked" | "done"; "agent"?: string | null; "note"?: string | null; "blocked_reason"?: string | null; "blocked_by"?: string | null; };
export type TaskReviewInput = { "agent": string; };
export type MessageSendInput = { "to": string; "content": string; "from"?: string | null; "type"?: string | null; };
export type Message = { "id": string; "from": string; "to": string; "type": string; "content": string; "delivered": boolean; "acknowledged": boolean; "sent_at": string; };
export type MessageList = { "messages": (Message)[]; "cursor": string | null; };
export type MessageEdge = { "from": string; "to": string; "count": number; };
export type MessageEdgeList = { "edges": (MessageEdge)[]; "cursor": string | null; };
export type ApprovalAskInput = { "question": string; "kind"?: "ask" | "destructive" | "sensitive" | "irreversible" | null; "action"?: string | null; "refused"?: string | null; "arguments"?: Record<string, unknown> | null; "sandbox"?: string | null; "note"?: string | null; "urgency"?: "low" | "medium" | "high" | null; "alternatives"?: (string)[] | null; "attachments"?: unknown[] | null; "people"?: number | null; "expires_ms"?: number | string | null; "key"?: string | null; "wait_ms"?: number | string | null; };
export type Approval = { "id": string; "kind": "proposal" | "egress" | "ask" | "destructive" | "sensitive" | "irreversible" | "prompt"; "state": "pending" | "approved" | "rejected" | "closed" | "expired" | "cancelled"; "question": string; "urgency": "low" | "medium" | "high"; "asker": string | null; "agent": string | null; "action": string; "arguments": Record<string, unknown> | null; "hash": string | null; "alternatives": (string)[]; "choice": string | null; "attachments": unknown[]; "people": number; "votes": number; "sandbox": string | null; "exec": string | null; "way": string | null; "typed": boolean | null; "host": string | null; "port": number | null; "scope": "once" | "sandbox" | "always" | "time" | "rule" | null; "project": string | null; "task_id": string | null; "to": string | null; "note": string; "key": string | null; "decided_by": string | null; "reason": string; "created_at": string; "decided_at": string | null; "expires_at": string | null; "grant"?: Record<string, unknown> | null; };
export type ApprovalList = { "approvals": (Approval)[]; "cursor": string | null; };
export type ApprovalAnswerInput = { "text"?: string | null; };
export type ApprovalAnswersInput = { "answers": unknown[]; };
export type ApprovalApproveInput = { "reason"?: string | null; "choice"?: string | null; "scope"?: "once" | "sandbox" | "always" | "time" | "rule" | null; "for_ms"?: number | string | null; "pattern"?: string | null; "preview"?: boolean | null; };
export type ApprovalDenyInput = { "reason"?: string | null; "choice"?: string | null; "scope"?: "once" | "sandbox" | "always" | "time" | "rule" | null; "for_ms"?: number | string | null; "pattern"?: string | null; "preview"?: boolean | null; };
export type ApprovalCancelInput = { "reason"?: string | null; };
export type Grant = { "id": string; "approval": string; "asker": string; "operation": string; "hash": string | null; "sandbox": string | null; "pattern": string | null; "uses": number | null; "used": number; "left_ms": number; "expires_at": string; "created_by": string; "created_at": string; };
export type GrantList = { "grants": (Grant)[]; "cursor": string | null; };
export type GateAddInput = { "operation": string; "role"?: "observer" | "agent" | "operator" | "admin" | null; "label"?: string | null; "command"?: string | null; "path"?: string | null; "people"?: number | null; "reason"?: string | null; };
export type Gate = { "id": string; "operation": string; "role": "observer" | "agent" | "operator" | "admin" | null; "label": string | null; "command": string | null; "path": string | null; "people": number; "reason": string; "created_by": string; "created_at": string; };
export type GateList = { "gates": (Gate)[]; "cursor": string | null; };
export type WebhookAddInput = { "url": string; "types"?: (string)[] | null; };
export type NewWebhook = { "id": string; "url": string; "types": (string)[]; "done_seq": number; "created_by": string; "created_at": string; "secret": string; };
export type Webhook = { "id": string; "url": string; "types": (string)[]; "done_seq": number; "created_by": string; "created_at": string; };
export type WebhookList = { "webhooks": (Webhook)[]; "cursor": string | null; };
export type WebhookTest = { "delivered": boolean; "status": number; "error": string; };
export type Delivery = { "seq": number; "type": string; "state": "delivered" | "failing" | "dead"; "attempts": number; "status": number; "error": string; "at": string; };
export type DeliveryList = { "deliveries": (Delivery)[]; "cursor": string | null; };
export type Error = { "error": { "code": "invalid" | "unauthenticated" | "forbidden" | "not_found" | "method_not_allowed" | "conflict" | "gone" | "precondition" | "too_large" | "uri_too_long" | "headers_too_large" | "media_type" | "range" | "expectation" | "limit" | "timeout" | "cancelled" | "unavailable" | "full" | "unsupported" | "internal"; "message": string; "object"?: string; "hint"?: string; }; };
export interface Operations {
  serverInfo: { args: {  }; body: undefined; reply: ServerInfo };
  settingsList: { args: {  }; body: undefined; reply: SettingList };
  healthz: { args: {  }; body: undefined; reply: Health };
  readyz: { args: {  }; body: undefined; reply: Readiness };
  metrics: { args: {  }; body: undefined; reply: undefined };
  openapi: { args: {  }; body: undefined; reply: Description };
  tokenCreate: { args: {  }; body: TokenCreateInput; reply: NewToken };
  tokenList: { args: { "limit"?: number; "cursor"?: string; }; body: undefined; reply: TokenList };
  tokenGet: { args: { "id": string; }; body: undefined; reply: Token };
  tokenRevoke: { args: { "id": string; }; body: undefined; reply: undefined };
  tokenSelf: { args: {  }; body: undefined; reply: Self };
  eventList: { args: { "type"?: string; "object"?: string; "actor"?: string; "since"?: number | string; "limit"?: number; "cursor"?: string; "follow"?: boolean; "audit"?: boolean; }; body: undefined; reply: EventList };
  auditList: { args: { "type"?: string; "object"?: string; "actor"?: string; "since"?: number | string; "limit"?: number; "cursor"?: string; }; body: undefined; reply: EventList };
  auditVerify: { args: { "head"?: string; }; body: undefined; reply: AuditResult };
  login: { args: {  }; body: LoginInput; reply: Session };
  loginCode: { args: {  }; body: LoginCodeInput | null; reply: LoginLink };
  logout: { args: {  }; body: undefined; reply: undefined };
  sandboxCreate: { args: {  }; body: SandboxCreateInput | null; reply: Sandbox };
  sandboxList: { args: { "state"?: "creating" | "running" | "paused" | "stopping" | "stopped" | "starting" | "failed" | "destroyed" | "orphan"; "label"?: Record<string, string>; "runtime"?: string; "limit"?: number; "cursor"?: string; }; body: undefined; reply: SandboxList };
  sandboxGet: { args: { "id": string; }; body: undefined; reply: Sandbox };
  sandboxUpdate: { args: { "id": string; }; body: SandboxUpdateInput | null; reply: Sandbox };
  sandboxDestroy: { args: { "id": string; }; body: undefined; reply: undefined };
  sandboxStart: { args: { "id": string; }; body: undefined; reply: Sandbox };
  sandboxStop: { args: { "id": string; }; body: SandboxStopInput | null; reply: Sandbox };
  sandboxRestart: { args: { "id": string; }; body: SandboxRestartInput | null; reply: Sandbox };
  sandboxPause: { args: { "id": string; }; body: undefined; reply: Sandbox };
  sandboxResume: { args: { "id": string; }; body: undefined; reply: Sandbox };
  sandboxStats: { args: { "id": string; }; body: undefined; reply: SandboxStats };
  sandboxLogs: { args: { "id": string; "exec"?: string; "tail"?: number | string; "follow"?: boolean; }; body: undefined; reply: undefined };
  run: { args: {  }; body: RunInput | null; reply: RunResult };
  runAttach: { args: {  }; body: undefined; reply: undefined };
  execCreate: { args: { "id": string; }; body: ExecCreateInput | null; reply: ExecResult };
  execList: { args: { "id": string; "state"?: "starting" | "running" | "exited" | "failed" | "lost"; "limit"?: number; "cursor"?: string; }; body: undefined; reply: ExecList };
  execGet: { args: { "id": string; "exec": string; }; body: undefined; reply: Exec };
  execOutput: { args: { "id": string; "exec": string; "stream"?: "stdout" | "stderr"; "offset"?: number; "follow"?: boolean; }; body: undefined; reply: undefined };
  execAttach: { args: { "id": string; "exec": string; "role"?: "observer" | "controller"; "take"?: boolean; "stdout_offset"?: number; "stderr_offset"?: number; "name"?: string; "raw"?: boolean; "repaint"?: boolean; "screen"?: boolean; "updates"?: number; }; body: undefined; reply: undefined };
  execSignal: { args: { "id": string; "exec": string; }; body: ExecSignalInput; reply: Exec };
  execStdin: { args: { "id": string; "exec": string; "eof"?: boolean; }; body: undefined; reply: undefined };
  execResize: { args: { "id": string; "exec": string; }; body: ExecResizeInput; reply: Exec };
  execWait: { args: { "id": string; "exec": string; }; body: undefined; reply: Exec };
  execCancel: { args: { "id": string; "exec": string; }; body: undefined; reply: Exec };
  execScreen: { args: { "id": string; "exec": string; "format"?: "json" | "text" | "ansi"; "cells"?: boolean; "history"?: boolean; "offset"?: number; }; body: undefined; reply: Screen };
  sessionCreate: { args: { "id": string; }; body: SessionCreateInput | null; reply: TerminalSession };
  sessionList: { args: { "id": string; "all"?: boolean; "limit"?: number; "cursor"?: string; }; body: undefined; reply: TerminalSessionList };
  sessionListAll: { args: { "all"?: boolean; "limit"?: number; "cursor"?: string; }; body: undefined; reply: TerminalSessionList };
  sessionGet: { args: { "id": string; "session": string; }; body: undefined; reply: TerminalSession };
  sessionMembers: { args: { "id": string; "session": string; }; body: undefined; reply: SessionMemberList };
  sessionScreen: { args: { "id": string; "session": string; "format"?: "json" | "text" | "ansi"; "cells"?: boolean; "history"?: boolean; "offset"?: number; }; body: undefined; reply: Screen };
  sessionSend: { args: { "id": string; "session": string; }; body: SessionSendInput | null; reply: undefined };
  sessionResize: { args: { "id": string; "session": string; }; body: SessionResizeInput; reply: TerminalSession };
  sessionKill: { args: { "id": string; "session": string; }; body: undefined; reply: TerminalSession };
  sessionAttach: { args: { "id": string; "session": string; "role"?: "observer" | "controller"; "take"?: boolean; "stdout_offset"?: number; "stderr_offset"?: number; "name"?: string; "raw"?: boolean; "repaint"?: boolean; "screen"?: boolean; "updates"?: number; }; body: undefined; reply: undefined };
  sessionRecording: { args: { "id": string; "session": string; "follow"?: boolean; "idle"?: number | string; "limit"?: number | string; }; body: undefined; reply: undefined };
  sessionSearch: { args: { "id": string; "session": string; "text": string; "limit"?: number; }; body: undefined; reply: SessionMatchList };
  fileRead: { args: { "id": string; "path": string; }; body: undefined; reply: undefined };
  fileStat: { args: { "id": string; "path": string; }; body: undefined; reply: undefined };
  fileWrite: { args: { "id": string; "path": string; "mode"?: string; "append"?: boolean; "exclusive"?: boolean; "parents"?: boolean; "uid"?: number; "gid"?: number; }; body: undefined; reply: undefined };
  fileRemove: { args: { "id": string; "path": string; "recursive"?: boolean; }; body: undefined; reply: undefined };
  fileList: { args: { "id": string; "path": string; "limit"?: number; "cursor"?: string; }; body: undefined; reply: FileList };
  fileMkdir: { args: { "id": string; }; body: FileMkdirInput; reply: undefined };
  fileMove: { args: { "id": string; }; body: FileMoveInput; reply: undefined };
  fileWatch: { args: { "id": string; "path": string; "recursive"?: boolean; }; body: undefined; reply: undefined };
  archiveRead: { args: { "id": string; "path": string; }; body: undefined; reply: undefined };
  archiveWrite: { args: { "id": string; "path": string; "parents"?: boolean; }; body: undefined; reply: undefined };
  portProxyGet: { args: { "id": string; "port": string; "path": string; }; body: undefined; reply: undefined };
  portProxyHead: { args: { "id": string; "port": string; "path": string; }; body: undefined; reply: undefined };
  portProxyPost: { args: { "id": string; "port": string; "path": string; }; body: undefined; reply: undefined };
  portProxyPut: { args: { "id": string; "port": string; "path": string; }; body: undefined; reply: undefined };
  portProxyPatch: { args: { "id": string; "port": string; "path": string; }; body: undefined; reply: undefined };
  portProxyDelete: { args: { "id": string; "port": string; "path": string; }; body: undefined; reply: undefined };
  portProxyOptions: { args: { "id": string; "port": string; "path": string; }; body: undefined; reply: undefined };
  imageList: { args: { "limit"?: number; "cursor"?: string; "all"?: boolean; }; body: undefined; reply: ImageList };
  imageGet: { args: { "id": string; }; body: undefined; reply: Image };
  imageRemove: { args: { "id": string; }; body: undefined; reply: undefined };
  imagePull: { args: {  }; body: ImagePullInput; reply: Image };
  imageImport: { args: { "name"?: string; "tag"?: string; "format"?: "auto" | "oci" | "docker" | "tar"; "wait"?: boolean; }; body: undefined; reply: Image };
  accessCa: { args: {  }; body: undefined; reply: SshAuthority };
  accessKrl: { args: {  }; body: undefined; reply: undefined };
  accessRequest: { args: {  }; body: AccessRequestInput; reply: NewCertificate };
  accessList: { args: { "sandbox"?: string; "state"?: "active" | "expired" | "revoked"; "limit"?: number; "cursor"?: string; }; body: undefined; reply: CertificateList };
  accessGet: { args: { "id": string; }; body: undefined; reply: Certificate };
  accessRevoke: { args: { "id": string; "reason"?: string; }; body: undefined; reply: Certificate };
  templateCreate: { args: {  }; body: TemplateCreateInput; reply: Template };
  templateList: { args: { "tenant"?: string; "limit"?: number; "cursor"?: string; }; body: undefined; reply: TemplateList };
  templateGet: { args: { "id": string; "tenant"?: string; }; body: undefined; reply: Template };
  templateRemove: { args: { "id": string; "tenant"?: string; }; body: undefined; reply: undefined };
  volumeCreate: { args: {  }; body: VolumeCreateInput; reply: Volume };
  volumeList: { args: { "tenant"?: string; "limit"?: number; "cursor"?: string; }; body: undefined; reply: VolumeList };
  volumeGet: { args: { "id": string; "tenant"?: string; }; body: undefined; reply: Volume };
  volumeUpdate: { args: { "id": string; }; body: VolumeUpdateInput; reply: Volume };
  volumeRemove: { args: { "id": string; "tenant"?: string; }; body: undefined; reply: undefined };
  secretCreate: { args: {  }; body: SecretCreateInput; reply: Secret };
  secretList: { args: { "limit"?: number; "cursor"?: string; }; body: undefined; reply: SecretList };
  secretSet: { args: { "name": string; }; body: SecretSetInput | null; reply: Secret };
  secretGet: { args: { "name": string; }; body: undefined; reply: Secret };
  secretRemove: { args: { "name": string; }; body: undefined; reply: undefined };
  ca: { args: {  }; body: undefined; reply: undefined };
  ruleList: { args: { "limit"?: number; "cursor"?: string; }; body: undefined; reply: RuleList };
  ruleRemove: { args: { "id": string; }; body: undefined; reply: undefined };
  portTunnel: { args: { "id": string; "port": string; }; body: undefined; reply: undefined };
  portPreview: { args: { "id": string; }; body: PortPreviewInput; reply: PreviewLink };
  agentRegister: { args: {  }; body: AgentRegisterInput; reply: NewAgent };
  agentList: { args: { "capability"?: string; "status"?: "offline" | "online" | "busy" | "stalled" | "paused" | "revoked"; "limit"?: number; "cursor"?: string; }; body: undefined; reply: AgentList };
  agentGet: { args: { "name": string; }; body: undefined; reply: Agent };
  agentUpdate: { args: { "name": string; }; body: AgentUpdateInput | null; reply: Agent };
  agentRemove: { args: { "name": string; }; body: undefined; reply: undefined };
  agentHeartbeat: { args: { "name": string; }; body: undefined; reply: Heartbeat };
  agentDefaultMode: { args: {  }; body: AgentDefaultModeInput; reply: DefaultMode };
  agentCheckpoint: { args: { "name": string; }; body: AgentCheckpointInput | null; reply: Checkpoint };
  agentCheckpoints: { args: { "name": string; "limit"?: number; }; body: undefined; reply: CheckpointList };
  agentPause: { args: { "name": string; }; body: AgentPauseInput | null; reply: Agent };
  agentResume: { args: { "name": string; }; body: undefined; reply: Agent };
  agentRevoke: { args: { "name": string; }; body: AgentRevokeInput | null; reply: Revocation };
  agentRevocation: { args: { "name": string; }; body: undefined; reply: PendingRevocation };
  agentAck: { args: { "name": string; }; body: AgentAckInput | null; reply: Acknowledged };
  agentRevocations: { args: { "limit"?: number; }; body: undefined; reply: RevocationList };
  projectCreate: { args: {  }; body: ProjectCreateInput; reply: Project };
  projectList: { args: { "member"?: string; "limit"?: number; "cursor"?: string; }; body: undefined; reply: ProjectList };
  projectGet: { args: { "id": string; }; body: undefined; reply: Project };
  projectRemove: { args: { "id": string; }; body: undefined; reply: undefined };
  projectJoin: { args: { "id": string; }; body: ProjectJoinInput; reply: Project };
  projectLimit: { args: { "id": string; }; body: ProjectLimitInput; reply: Project };
  projectMetrics: { args: { "id": string; }; body: undefined; reply: BoardMetrics };
  projectFileRead: { args: { "id": string; "path": string; "version"?: number; }; body: undefined; reply: undefined };
  projectFileWrite: { args: { "id": string; "path": string; "uploader"?: string; }; body: undefined; reply: ProjectFile };
  projectFileRemove: { args: { "id": string; "path": string; }; body: undefined; reply: undefined };
  projectFileList: { args: { "id": string; "path"?: string; "limit"?: number; "cursor"?: string; }; body: undefined; reply: ProjectFileList };
  taskCreate: { args: {  }; body: TaskCreateInput; reply: Task };
  taskList: { args: { "project"?: string; "agent"?: string; "status"?: "backlog" | "ready" | "in_progress" | "in_review" | "blocked" | "done"; "limit"?: number; "cursor"?: string; }; body: undefined; reply: TaskList };
  taskGet: { args: { "id": string; }; body: undefined; reply: Task };
  taskHistory: { args: { "id": string; }; body: undefined; reply: TaskStepList };
  taskReady: { args: { "project": string; "agent"?: string; "capabilities"?: (string)[]; }; body: undefined; reply: TaskList };
  taskClaim: { args: { "id": string; }; body: TaskClaimInput; reply: TaskChange };
  taskAssign: { args: { "id": string; }; body: TaskAssignInput; reply: TaskChange };
  taskUnassign: { args: { "id": string; }; body: undefined; reply: TaskChange };
  taskMove: { args: { "id": string; }; body: TaskMoveInput; reply: TaskChange };
  taskReview: { args: { "id": string; }; body: TaskReviewInput; reply: TaskChange };
  messageSend: { args: {  }; body: MessageSendInput; reply: Message };
  messageInbox: { args: { "agent"?: string; "unread"?: boolean; "limit"?: number; }; body: undefined; reply: MessageList };
  messageAck: { args: { "id": string; }; body: undefined; reply: undefined };
  messageHistory: { args: { "a": string; "b": string; "limit"?: number; }; body: undefined; reply: MessageList };
  messageGraph: { args: {  }; body: undefined; reply: MessageEdgeList };
  approvalAsk: { args: {  }; body: ApprovalAskInput; reply: Approval };
  approvalList: { args: { "kind"?: "proposal" | "egress" | "ask" | "destructive" | "sensitive" | "irreversible" | "prompt"; "agent"?: string; "sandbox"?: string; "key"?: string; "state"?: "pending" | "approved" | "rejected" | "closed" | "expired" | "cancelled"; "limit"?: number; "cursor"?: string; }; body: undefined; reply: ApprovalList };
  approvalAnswer: { args: { "id": string; }; body: ApprovalAnswerInput | null; reply: Approval };
  approvalAnswers: { args: {  }; body: ApprovalAnswersInput; reply: ApprovalList };
  approvalGet: { args: { "id": string; "wait_ms"?: number | string; }; body: undefined; reply: Approval };
  approvalWatch: { args: { "id": string; }; body: undefined; reply: undefined };
  approvalApprove: { args: { "id": string; }; body: ApprovalApproveInput | null; reply: Approval };
  approvalDeny: { args: { "id": string; }; body: ApprovalDenyInput | null; reply: Approval };
  approvalCancel: { args: { "id": string; }; body: ApprovalCancelInput | null; reply: Approval };
  grantList: { args: { "limit"?: number; "cursor"?: string; }; body: undefined; reply: GrantList };
  grantRevoke: { args: { "id": string; }; body: undefined; reply: undefined };
  gateAdd: { args: {  }; body: GateAddInput; reply: Gate };
  gateList: { args: { "limit"?: number; "cursor"?: string; }; body: undefined; reply: GateList };
  gateRemove: { args: { "id": string; }; body: undefined; reply: undefined };
  webhookAdd: { args: {  }; body: WebhookAddInput; reply: NewWebhook };
  webhookList: { args: { "limit"?: number; "cursor"?: string; }; body: undefined; reply: WebhookList };
  webhookRemove: { args: { "id": string; }; body: undefined; reply: undefined };
  webhookTest: { args: { "id": string; }; body: undefined; reply: WebhookTest };
  webhookDeliveries: { args: { "id": string; "state"?: "delivered" | "failing" | "dead"; "limit"?: number; }; body: undefined; reply: DeliveryList };
}
/** Method, path and permission of each operation. */
export const operations: Record<keyof Operations, readonly [string, string, string]> = {
  serverInfo: ["GET", "/holt/v1/info", "read"],
  settingsList: ["GET", "/holt/v1/settings", "read"],
  healthz: ["GET", "/healthz", "none"],
  readyz: ["GET", "/readyz", "none"],
  metrics: ["GET", "/metrics", "read"],
  openapi: ["GET", "/holt/v1/openapi.json", "none"],
  tokenCreate: ["POST", "/holt/v1/tokens", "tokens"],
  tokenList: ["GET", "/holt/v1/tokens", "tokens"],
  tokenGet: ["GET", "/holt/v1/tokens/{id}", "tokens"],
  tokenRevoke: ["DELETE", "/holt/v1/tokens/{id}", "tokens"],
  tokenSelf: ["GET", "/holt/v1/tokens/self", "self"],
  eventList: ["GET", "/holt/v1/events", "events"],
  auditList: ["GET", "/holt/v1/audit", "audit"],
  auditVerify: ["GET", "/holt/v1/audit/verify", "audit"],
  login: ["POST", "/holt/v1/login", "none"],
  loginCode: ["POST", "/holt/v1/login/code", "login"],
  logout: ["POST", "/holt/v1/logout", "self"],
  sandboxCreate: ["POST", "/holt/v1/sandboxes", "sandbox.write"],
  sandboxList: ["GET", "/holt/v1/sandboxes", "sandbox.read"],
  sandboxGet: ["GET", "/holt/v1/sandboxes/{id}", "sandbox.read"],
  sandboxUpdate: ["PATCH", "/holt/v1/sandboxes/{id}", "sandbox.write"],
  sandboxDestroy: ["DELETE", "/holt/v1/sandboxes/{id}", "sandbox.write"],
  sandboxStart: ["POST", "/holt/v1/sandboxes/{id}/start", "sandbox.write"],
  sandboxStop: ["POST", "/holt/v1/sandboxes/{id}/stop", "sandbox.write"],
  sandboxRestart: ["POST", "/holt/v1/sandboxes/{id}/restart", "sandbox.write"],
  sandboxPause: ["POST", "/holt/v1/sandboxes/{id}/pause", "sandbox.write"],
  sandboxResume: ["POST", "/holt/v1/sandboxes/{id}/resume", "sandbox.write"],
  sandboxStats: ["GET", "/holt/v1/sandboxes/{id}/stats", "sandbox.read"],
  sandboxLogs: ["GET", "/holt/v1/sandboxes/{id}/logs", "sandbox.content"],
  run: ["POST", "/holt/v1/run", "sandbox.write"],
  runAttach: ["GET", "/holt/v1/run", "sandbox.write"],
  execCreate: ["POST", "/holt/v1/sandboxes/{id}/execs", "sandbox.write"],
  execList: ["GET", "/holt/v1/sandboxes/{id}/execs", "sandbox.read"],
  execGet: ["GET", "/holt/v1/sandboxes/{id}/execs/{exec}", "sandbox.read"],
  execOutput: ["GET", "/holt/v1/sandboxes/{id}/execs/{exec}/output", "sandbox.content"],
  execAttach: ["GET", "/holt/v1/sandboxes/{id}/execs/{exec}/attach", "sandbox.content"],
  execSignal: ["POST", "/holt/v1/sandboxes/{id}/execs/{exec}/signal", "sandbox.write"],
  execStdin: ["POST", "/holt/v1/sandboxes/{id}/execs/{exec}/stdin", "sandbox.write"],
  execResize: ["POST", "/holt/v1/sandboxes/{id}/execs/{exec}/resize", "sandbox.write"],
  execWait: ["GET", "/holt/v1/sandboxes/{id}/execs/{exec}/wait", "sandbox.read"],
  execCancel: ["POST", "/holt/v1/sandboxes/{id}/execs/{exec}/cancel", "sandbox.write"],
  execScreen: ["GET", "/holt/v1/sandboxes/{id}/execs/{exec}/screen", "sandbox.content"],
  sessionCreate: ["POST", "/holt/v1/sandboxes/{id}/sessions", "sandbox.write"],
  sessionList: ["GET", "/holt/v1/sandboxes/{id}/sessions", "sandbox.read"],
  sessionListAll: ["GET", "/holt/v1/sessions", "sandbox.read"],
  sessionGet: ["GET", "/holt/v1/sandboxes/{id}/sessions/{session}", "sandbox.read"],
  sessionMembers: ["GET", "/holt/v1/sandboxes/{id}/sessions/{session}/members", "sandbox.read"],
  sessionScreen: ["GET", "/holt/v1/sandboxes/{id}/sessions/{session}/screen", "sandbox.content"],
  sessionSend: ["POST", "/holt/v1/sandboxes/{id}/sessions/{session}/send", "sandbox.write"],
  sessionResize: ["POST", "/holt/v1/sandboxes/{id}/sessions/{session}/resize", "sandbox.write"],
  sessionKill: ["POST", "/holt/v1/sandboxes/{id}/sessions/{session}/kill", "sandbox.write"],
  sessionAttach: ["GET", "/holt/v1/sandboxes/{id}/sessions/{session}/attach", "sandbox.content"],
  sessionRecording: ["GET", "/holt/v1/sandboxes/{id}/sessions/{session}/recording", "sandbox.content"],
  sessionSearch: ["GET", "/holt/v1/sandboxes/{id}/sessions/{session}/search", "sandbox.content"],
  fileRead: ["GET", "/holt/v1/sandboxes/{id}/files", "sandbox.content"],
  fileStat: ["HEAD", "/holt/v1/sandboxes/{id}/files", "sandbox.content"],
  fileWrite: ["PUT", "/holt/v1/sandboxes/{id}/files", "sandbox.write"],
  fileRemove: ["DELETE", "/holt/v1/sandboxes/{id}/files", "sandbox.write"],
  fileList: ["GET", "/holt/v1/sandboxes/{id}/files/list", "sandbox.content"],
  fileMkdir: ["POST", "/holt/v1/sandboxes/{id}/files/mkdir", "sandbox.write"],
  fileMove: ["POST", "/holt/v1/sandboxes/{id}/files/move", "sandbox.write"],
  fileWatch: ["GET", "/holt/v1/sandboxes/{id}/files/watch", "sandbox.content"],
  archiveRead: ["GET", "/holt/v1/sandboxes/{id}/archive", "sandbox.content"],
  archiveWrite: ["PUT", "/holt/v1/sandboxes/{id}/archive", "sandbox.write"],
  portProxyGet: ["GET", "/holt/v1/sandboxes/{id}/ports/{port}/{path}", "sandbox.write"],
  portProxyHead: ["HEAD", "/holt/v1/sandboxes/{id}/ports/{port}/{path}", "sandbox.write"],
  portProxyPost: ["POST", "/holt/v1/sandboxes/{id}/ports/{port}/{path}", "sandbox.write"],
  portProxyPut: ["PUT", "/holt/v1/sandboxes/{id}/ports/{port}/{path}", "sandbox.write"],
  portProxyPatch: ["PATCH", "/holt/v1/sandboxes/{id}/ports/{port}/{path}", "sandbox.write"],
  portProxyDelete: ["DELETE", "/holt/v1/sandboxes/{id}/ports/{port}/{path}", "sandbox.write"],
  portProxyOptions: ["OPTIONS", "/holt/v1/sandboxes/{id}/ports/{port}/{path}", "sandbox.write"],
  imageList: ["GET", "/holt/v1/images", "sandbox.read"],
  imageGet: ["GET", "/holt/v1/images/{id}", "sandbox.read"],
  imageRemove: ["DELETE", "/holt/v1/images/{id}", "image.write"],
  imagePull: ["POST", "/holt/v1/images/pull", "image.write"],
  imageImport: ["POST", "/holt/v1/images/import", "image.write"],
  accessCa: ["GET", "/holt/v1/access/ca", "self"],
  accessKrl: ["GET", "/holt/v1/access/krl", "none"],
  accessRequest: ["POST", "/holt/v1/access/certificates", "sandbox.write"],
  accessList: ["GET", "/holt/v1/access/certificates", "sandbox.read"],
  accessGet: ["GET", "/holt/v1/access/certificates/{id}", "sandbox.read"],
  accessRevoke: ["DELETE", "/holt/v1/access/certificates/{id}", "sandbox.write"],
  templateCreate: ["POST", "/holt/v1/templates", "sandbox.write"],
  templateList: ["GET", "/holt/v1/templates", "sandbox.read"],
  templateGet: ["GET", "/holt/v1/templates/{id}", "sandbox.read"],
  templateRemove: ["DELETE", "/holt/v1/templates/{id}", "sandbox.write"],
  volumeCreate: ["POST", "/holt/v1/volumes", "sandbox.write"],
  volumeList: ["GET", "/holt/v1/volumes", "sandbox.read"],
  volumeGet: ["GET", "/holt/v1/volumes/{id}", "sandbox.read"],
  volumeUpdate: ["PATCH", "/holt/v1/volumes/{id}", "sandbox.write"],
  volumeRemove: ["DELETE", "/holt/v1/volumes/{id}", "sandbox.write"],
  secretCreate: ["POST", "/holt/v1/secrets", "secrets"],
  secretList: ["GET", "/holt/v1/secrets", "secret.read"],
  secretSet: ["PUT", "/holt/v1/secrets/{name}", "secrets"],
  secretGet: ["GET", "/holt/v1/secrets/{name}", "secret.read"],
  secretRemove: ["DELETE", "/holt/v1/secrets/{name}", "secrets"],
  ca: ["GET", "/holt/v1/ca", "read"],
  ruleList: ["GET", "/holt/v1/rules", "read"],
  ruleRemove: ["DELETE", "/holt/v1/rules/{id}", "team.rule"],
  portTunnel: ["GET", "/holt/v1/sandboxes/{id}/ports/{port}", "sandbox.write"],
  portPreview: ["POST", "/holt/v1/sandboxes/{id}/previews", "sandbox.write"],
  agentRegister: ["POST", "/holt/v1/agents", "team.report"],
  agentList: ["GET", "/holt/v1/agents", "team.read"],
  agentGet: ["GET", "/holt/v1/agents/{name}", "team.read"],
  agentUpdate: ["PATCH", "/holt/v1/agents/{name}", "team.write"],
  agentRemove: ["DELETE", "/holt/v1/agents/{name}", "team.write"],
  agentHeartbeat: ["POST", "/holt/v1/agents/{name}/heartbeat", "team.report"],
  agentDefaultMode: ["PUT", "/holt/v1/autonomy", "team.rule"],
  agentCheckpoint: ["POST", "/holt/v1/agents/{name}/checkpoints", "team.report"],
  agentCheckpoints: ["GET", "/holt/v1/agents/{name}/checkpoints", "team.read"],
  agentPause: ["POST", "/holt/v1/agents/{name}/pause", "team.rule"],
  agentResume: ["POST", "/holt/v1/agents/{name}/resume", "team.rule"],
  agentRevoke: ["POST", "/holt/v1/agents/{name}/revoke", "team.rule"],
  agentRevocation: ["GET", "/holt/v1/agents/{name}/revocation", "team.read"],
  agentAck: ["POST", "/holt/v1/agents/{name}/revocation/ack", "team.report"],
  agentRevocations: ["GET", "/holt/v1/revocations", "team.read"],
  projectCreate: ["POST", "/holt/v1/projects", "team.write"],
  projectList: ["GET", "/holt/v1/projects", "team.read"],
  projectGet: ["GET", "/holt/v1/projects/{id}", "team.read"],
  projectRemove: ["DELETE", "/holt/v1/projects/{id}", "team.write"],
  projectJoin: ["POST", "/holt/v1/projects/{id}/members", "team.write"],
  projectLimit: ["PUT", "/holt/v1/projects/{id}/limits", "team.write"],
  projectMetrics: ["GET", "/holt/v1/projects/{id}/metrics", "team.read"],
  projectFileRead: ["GET", "/holt/v1/projects/{id}/files", "team.content"],
  projectFileWrite: ["PUT", "/holt/v1/projects/{id}/files", "team.write"],
  projectFileRemove: ["DELETE", "/holt/v1/projects/{id}/files", "team.write"],
  projectFileList: ["GET", "/holt/v1/projects/{id}/files/list", "team.read"],
  taskCreate: ["POST", "/holt/v1/tasks", "team.write"],
  taskList: ["GET", "/holt/v1/tasks", "team.read"],
  taskGet: ["GET", "/holt/v1/tasks/{id}", "team.read"],
  taskHistory: ["GET", "/holt/v1/tasks/{id}/history", "team.read"],
  taskReady: ["GET", "/holt/v1/projects/{project}/ready", "team.read"],
  taskClaim: ["POST", "/holt/v1/tasks/{id}/claim", "team.write"],
  taskAssign: ["POST", "/holt/v1/tasks/{id}/assign", "team.write"],
  taskUnassign: ["POST", "/holt/v1/tasks/{id}/unassign", "team.write"],
  taskMove: ["POST", "/holt/v1/tasks/{id}/move", "team.write"],
  taskReview: ["POST", "/holt/v1/tasks/{id}/reviewers", "team.write"],
  messageSend: ["POST", "/holt/v1/messages", "team.write"],
  messageInbox: ["GET", "/holt/v1/messages", "team.read"],
  messageAck: ["POST", "/holt/v1/messages/{id}/ack", "team.write"],
  messageHistory: ["GET", "/holt/v1/messages/history", "team.read"],
  messageGraph: ["GET", "/holt/v1/messages/graph", "team.read"],
  approvalAsk: ["POST", "/holt/v1/approvals", "ask"],
  approvalList: ["GET", "/holt/v1/approvals", "ask.read"],
  approvalAnswer: ["POST", "/holt/v1/approvals/{id}/answer", "team.rule"],
  approvalAnswers: ["POST", "/holt/v1/approvals/answers", "team.rule"],
  approvalGet: ["GET", "/holt/v1/approvals/{id}", "ask.read"],
  approvalWatch: ["GET", "/holt/v1/approvals/{id}/events", "ask.read"],
  approvalApprove: ["POST", "/holt/v1/approvals/{id}/approve", "team.rule"],
  approvalDeny: ["POST", "/holt/v1/approvals/{id}/deny", "team.rule"],
  approvalCancel: ["POST", "/holt/v1/approvals/{id}/cancel", "ask"],
  grantList: ["GET", "/holt/v1/grants", "ask.read"],
  grantRevoke: ["DELETE", "/holt/v1/grants/{id}", "team.rule"],
  gateAdd: ["POST", "/holt/v1/gates", "team.rule"],
  gateList: ["GET", "/holt/v1/gates", "read"],
  gateRemove: ["DELETE", "/holt/v1/gates/{id}", "team.rule"],
  webhookAdd: ["POST", "/holt/v1/webhooks", "admin"],
  webhookList: ["GET", "/holt/v1/webhooks", "admin"],
  webhookRemove: ["DELETE", "/holt/v1/webhooks/{id}", "admin"],
  webhookTest: ["POST", "/holt/v1/webhooks/{id}/test", "admin"],
  webhookDeliveries: ["GET", "/holt/v1/webhooks/{id}/deliveries", "admin"],
};
