#!/usr/bin/env python3
"""The least hub in Flask, for run.py to measure beside holtd: the same work with everything in memory, nothing written, no tokens, no
rules but one owner per task and a limit of three.  One thread per connection, as Flask's own server does it.

usage: hub_flask.py PORT [SIZE...]
Of each SIZE there is an inbox box<SIZE> at the start, with so many messages that were read and 20 that were not.
"""
import collections
import datetime
import json
import logging
import queue
import sys
import threading
import uuid

from flask import Flask, Response, jsonify, request

app = Flask(__name__)
lock = threading.Lock()
projects, tasks, open_tasks = {}, {}, collections.Counter()
inboxes, messages = collections.defaultdict(list), {}
subscribers = []


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None).isoformat()


def publish(kind, data):
    text = f"id: {uuid.uuid4()}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"
    for q in subscribers:
        q.put(text)


@app.get("/ping")
def ping():
    return jsonify(status="ok")


@app.post("/agents/register")
def register():
    name = request.get_json(force=True)["name"]
    publish("agent_registered", {"name": name})
    return jsonify(id=name), 201


@app.post("/projects")
def make_project():
    p = {"id": str(uuid.uuid4()), **request.get_json(force=True)}
    projects[p["id"]] = p
    return jsonify(p), 201


@app.post("/projects/<project>/tasks")
def make_task(project):
    t = {"id": str(uuid.uuid4()), "project": project, "status": "backlog", "assigned_to": None, "claimed_by": None,
         "created_at": now(), **request.get_json(force=True)}
    with lock:
        tasks[t["id"]] = t
    publish("task_created", {"project": project, "task": t})
    return jsonify(t), 201


@app.post("/projects/<project>/tasks/<task>/claim")
def claim(project, task):
    agent = request.get_json(force=True)["agent"]
    with lock:
        t = tasks.get(task)
        if not t or t["project"] != project:
            return jsonify(error="Task not found"), 400
        if t["status"] not in ("backlog", "ready") or t["claimed_by"]:
            return jsonify(error="Cannot claim task"), 400
        if open_tasks[agent] >= 3:
            return jsonify(error="WIP limit reached"), 400
        open_tasks[agent] += 1
        t["assigned_to"] = t["claimed_by"] = agent
        t["status"] = "ready"
    publish("task_claimed", {"project": project, "task_id": task, "agent": agent})
    return jsonify(ok=True, task_id=task)


def put(sender, to, content, acknowledged=False):
    m = {"id": str(uuid.uuid4()), "from": sender, "to": to, "content": content, "type": "text", "timestamp": now(),
         "delivered": acknowledged, "acknowledged": acknowledged}
    with lock:
        messages[m["id"]] = m
        inboxes[m["to"]].append(m)
    return m


@app.post("/messages/send")
def send():
    body = request.get_json(force=True)
    m = put(body["from"], body["to"], body["content"])
    publish("message_sent", {k: m[k] for k in ("id", "from", "to", "content", "type", "timestamp")})
    return jsonify({k: m[k] for k in ("id", "from", "to", "timestamp")})


@app.get("/messages/<agent>")
def inbox(agent):
    unread = request.args.get("unread") == "true"
    with lock:
        found = [m for m in inboxes[agent] if not (unread and m["acknowledged"])]
    return jsonify([{k: v for k, v in m.items() if k != "to"} for m in found])


@app.post("/messages/<message>/ack")
def acknowledge(message):
    messages[message]["acknowledged"] = True
    return jsonify(status="ok")


@app.get("/events")
def events():
    q = queue.Queue()
    subscribers.append(q)

    def stream():
        yield ": hello\n\n"  # the head goes out with it
        while True:
            yield q.get()

    return Response(stream(), mimetype="text/event-stream")


if __name__ == "__main__":
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    for size in map(int, sys.argv[2:]):
        for n in range(size + 20):
            put("filler", f"box{size}", "y" * 100, n < size)
    app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
