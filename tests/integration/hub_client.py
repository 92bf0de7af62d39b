"""A client with the surface of the hub's Python SDK, written from its description (wire facts only)."""
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request


class HubError(Exception):
    def __init__(self, status, body, headers):
        super().__init__(f"{status}: {body}")
        self.status, self.body, self.headers = status, body, headers


def call(url, method, path, body=None, token=None, query=None, headers=None, raw=None):
    """(status, JSON, headers).  No content type is sent, as the hub's own curl lines do."""
    h = {"Connection": "close", **(headers or {})}
    if token:
        h["Authorization"] = f"Bearer {token}"
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    if data is not None:
        h.setdefault("Content-Type", "application/x-www-form-urlencoded")
    if query:
        path += "?" + urllib.parse.urlencode(query, doseq=True)
    r = urllib.request.Request(url + path, data, h, method=method)
    try:
        with urllib.request.urlopen(r, timeout=60) as f:
            return f.status, json.loads(f.read() or b"null"), f.headers
    except urllib.error.HTTPError as e:
        with e:
            text = e.read()
            return e.code, json.loads(text), e.headers


def form(parts, boundary="b0undary"):
    """multipart/form-data as requests writes it; parts: (name, filename or None, bytes)."""
    body = b""
    for name, filename, data in parts:
        extra = f'; filename="{filename}"' if filename is not None else ""
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n\r\n'.encode() + data + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def upload(url, project, filename, data, token=None, **fields):
    body, kind = form([*((k, None, v.encode()) for k, v in fields.items()), ("file", filename, data)])
    return call(url, "POST", f"/projects/{project}/files", token=token, raw=body, headers={"Content-Type": kind})


def download(url, project, filename, token=None, headers=None, **query):
    """(status, bytes, headers)"""
    h = {"Connection": "close", **(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
    path = f"/projects/{project}/files/{urllib.parse.quote(filename)}" + ("?" + urllib.parse.urlencode(query) if query else "")
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, None, h), timeout=60) as f:
            return f.status, f.read(), f.headers
    except urllib.error.HTTPError as e:
        with e:
            return e.code, e.read(), e.headers


class AgentClient:
    def __init__(self, hub_url, agent_name, agent_type="unknown", token=None):
        self.url, self.name, self.type, self.token = hub_url.rstrip("/"), agent_name, agent_type, token
        self._beat, self.failures = None, []

    def ask(self, method, path, body=None, **query):
        return call(self.url, method, path, body, self.token, query)

    def must(self, method, path, body=None, **query):
        status, reply, headers = self.ask(method, path, body, **query)
        if status >= 400:
            raise HubError(status, reply, headers)
        return reply

    def register(self, metadata=None, **more):
        reply = self.must("POST", "/agents/register",
                          {"name": self.name, "type": self.type, "metadata": metadata or {}, **more})
        self.token = reply.get("token", self.token)
        return reply

    def ensure_registered(self, metadata=None):
        if self.heartbeat():
            return True
        try:
            return bool(self.register(metadata))
        except (HubError, OSError):
            return False

    def unregister(self):
        return self.ask("DELETE", f"/agents/{self.name}")[0] == 200

    def heartbeat(self):
        return self.ask("POST", f"/agents/{self.name}/heartbeat")[0] == 200

    def start_heartbeat(self, interval=10):
        self._beat = threading.Event()

        def loop(stop):
            while not stop.wait(interval):
                self.heartbeat()

        threading.Thread(target=loop, args=(self._beat,), daemon=True).start()

    def stop_heartbeat(self):
        if self._beat:
            self._beat.set()

    def send_message(self, to, content, message_type="text"):
        return self.must("POST", "/messages/send",
                         {"from": self.name, "to": to, "content": content, "type": message_type})

    def get_messages(self, unread_only=False):
        return self.must("GET", f"/messages/{self.name}", **({"unread": "true"} if unread_only else {}))

    def ack(self, message_id):
        return self.ask("POST", f"/messages/{message_id}/ack")[0] == 200

    def process_inbox(self, handler, unread_only=True, auto_ack=True, max_messages=None):
        """How many were handled.  One whose handler fails stays unread: the next call brings it again."""
        count = 0
        for m in self.get_messages(unread_only)[:max_messages]:
            handler(m)
            count += 1
            if auto_ack:
                self.ack(m["id"])
        return count

    def wait_for_messages(self, timeout_seconds=30, poll_interval=1, unread_only=True):
        end = time.monotonic() + timeout_seconds
        while time.monotonic() < end:
            found = self.get_messages(unread_only)
            if found:
                return found
            time.sleep(poll_interval)
        return []

    def run_autonomous_loop(self, handler, poll_interval=2, heartbeat_interval=10, stop_event=None, metadata=None,
                            auto_ack=True):
        if not self.ensure_registered(metadata):
            raise RuntimeError("registration failed")
        stop_event, beaten = stop_event or threading.Event(), 0.0
        while not stop_event.is_set():
            if time.monotonic() - beaten > heartbeat_interval:
                self.heartbeat()
                beaten = time.monotonic()
            try:
                self.process_inbox(handler, auto_ack=auto_ack)
            except Exception as e:  # a handler's failure does not end the loop
                self.failures.append(e)
            stop_event.wait(poll_interval)

    def create_project(self, name):
        return self.must("POST", "/projects", {"name": name, "creator": self.name})

    def list_projects(self, agent=None):
        return self.must("GET", "/projects", **({"agent": agent} if agent else {}))

    def join_project(self, project):
        return self.ask("POST", f"/projects/{project}/join", {"agent": self.name})[0] == 200

    def upload_file(self, project, filename, data):
        status, reply, headers = upload(self.url, project, filename, data, self.token, uploader=self.name)
        if status >= 400:
            raise HubError(status, reply, headers)
        return reply

    def download_file(self, project, filename, **query):
        status, data, headers = download(self.url, project, filename, self.token, **query)
        if status >= 400:
            raise HubError(status, json.loads(data), headers)
        return data

    def create_task(self, project, title, description="", assigned_to=None, **more):
        return self.must("POST", f"/projects/{project}/tasks",
                         {"title": title, "description": description, "assigned_to": assigned_to, **more})

    def update_task(self, project, task, status, **more):
        return self.ask("PATCH", f"/projects/{project}/tasks/{task}", {"status": status, **more})[0] == 200

    def set_autonomy_mode(self, mode):
        return self.must("POST", f"/agents/{self.name}/autonomy", {"mode": mode})

    def set_capabilities(self, tags, description=""):
        return self.must("POST", f"/agents/{self.name}/capabilities", {"tags": tags, "description": description})

    def claim_task(self, project, task):
        return self.must("POST", f"/projects/{project}/tasks/{task}/claim", {"agent": self.name})

    def submit_checkpoint(self, task_id=None, state="", rationale="", metadata=None):
        return self.must("POST", f"/agents/{self.name}/checkpoint",
                         {"task_id": task_id, "state": state, "rationale": rationale, "metadata": metadata or {}})

    def get_my_tasks(self, project_id=None):
        return self.must("GET", "/tasks", agent=self.name, **({"project_id": project_id} if project_id else {}))

    def check_revocation(self):
        return self.must("GET", f"/agents/{self.name}/revocation")

    def acknowledge_revocation(self, revocation_id):
        return self.ask("POST", f"/agents/{self.name}/revocation/ack", {"revocation_id": revocation_id})[0] == 200

    def transition_task(self, project, task, status, blocked_reason=None, blocked_by=None):
        return self.ask("PATCH", f"/projects/{project}/tasks/{task}",
                        {"status": status, "blocked_reason": blocked_reason, "blocked_by": blocked_by})[0] == 200
