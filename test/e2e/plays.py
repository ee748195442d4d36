"""plays - what a store of an earlier release holds, in two halves: the first half of each play is
played by that release (tools/fixture) and kept in test/fixtures, the second by the server of today
(test/e2e/upgrade), which has migrated the store.

A first half returns what the second needs, as JSON. Each play has an agent of its own name, which
the agent of the earlier release carries out from the upgrade on. A play that is added here is in the
fixtures made from then on; one that stands here is never changed, or old fixtures do not fit it."""
import base64
import hashlib
import hmac
import http.server
import json
import threading

from kit import equal, until

# Fixed, since they are in the stores; an address of loopback that nobody else is likely to use.
HOOK = ("127.77.13.1", 47113)
SERVICE = ("127.77.13.1", 47114)
RETRY = {"threshold": 3, "delay": "PT1H", "rounds": 0, "then": "error"}
PARK = {"threshold": 1, "rounds": 0, "then": "error"}
PLAYS = {}


class Play:
    def __init__(self, begin):
        self.name = begin.__name__.replace("_", "-")
        self.begin = begin
        self.end = None
        PLAYS[self.name] = self

    def finish(self, end):
        self.end = end
        return self


def url(address):
    return f"http://{address[0]}:{address[1]}"


def call(name, agent, **reeve):
    """A call with an undo that repeats all that it is given, unless told otherwise."""
    undo = {"call": agent, "with": {"key": "${ $undo.idempotencyKey }", "was": "${ $undo.output }",
                                    "outcome": "${ $undo.outcome }"}}
    return {name: {"call": agent, "with": {"sku": "${ $workflow.input.sku }"}, "metadata": {
        "reeve": {"compensate": [{"un" + name: undo}], **reeve}}}}


def start(server, name, *steps, more=None, **submission):
    """Publishes a workflow and submits a task of it; its id."""
    document = {"dsl": "1.0.3", "namespace": "shop", "name": name, "version": "1.0.0"}
    server.publish(json.dumps({"document": document, **(more or {}), "do": list(steps)}))
    return server.submit(name, **submission)


def act(server, task, deed, **body):
    equal((deed, server.ask("POST", f"/v1/tasks/{task}/{deed}", {"by": "ann", **body})[0]),
          (deed, 200))


def steps(server, task):
    return server.get(f"/v1/tasks/{task}/steps")["steps"]


def done_by(agent, step):
    """The step was completed by the agent of the earlier release."""
    equal((step["state"], step["output"]["agent"], step["output"]["timed"]),
          ("processed", agent, True))


def alert_kinds(server, task):
    return [alert["kind"] for alert in server.get("/v1/alerts")["alerts"]
            if alert.get("task") == task]


def bound(address, handler):
    """None while another run of the tests has the address."""
    try:
        return http.server.ThreadingHTTPServer(address, handler)
    except OSError:
        threading.Event().wait(0.1)
        return None


class Receiver:
    """Keeps what is posted to one of the fixed addresses."""

    def __init__(self, address):
        self.heard = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                receiver.heard.append((dict(self.headers), body))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(b'{"booked":true}')

            def log_message(self, *_):
                pass

        self.server = until(lambda: bound(address, Handler), f"{address} is free", 120)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


# ---- tasks on their way forward


@Play
def waiting(server):
    """Nothing was handed out yet; with all that a submitter may give."""
    given = {"key": "order-1", "priority": 9, "correlationId": "c-1", "tags": {"city": "Bonn"},
             "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
             "replyTo": {"stream": True}}
    return {"task": start(server, "waiting", call("stock", "waiting"), **given), "given": given,
            "state": "pending"}


@waiting.finish
def waiting(server, facts):
    task = server.end(facts["task"], "processed")
    given = facts["given"]
    for name in ("key", "priority", "correlationId", "tags"):
        equal(task[name], given[name])
    equal(given["traceparent"][3:35] in task["output"]["trace"], True)
    body = {"workflow": "shop/waiting", "input": {"sku": "A"}, **given}
    status, again = server.ask("POST", "/v1/tasks", body)
    equal((status, again["task"]), (200, facts["task"]))
    equal(server.ask("POST", "/v1/tasks", {**body, "input": {"sku": "B"}})[0], 409)
    found = server.get("/v1/tasks?tag=city%3DBonn")["tasks"]
    equal([row["task"] for row in found], [facts["task"]])
    messages = server.get(f"/v1/tasks/{facts['task']}/messages")["messages"]
    equal([(m["number"], m["kind"]) for m in messages],
          [(1, "received"), (2, "started"), (3, "step-completed"), (4, "processed")])


@Play
def second_step(server):
    task = start(server, "second-step", call("stock", "second-step"), call("ship", "second-step"))
    equal(server.reply(server.request("second-step"), output={"n": 1.10}), 200)
    return {"task": task, "state": "processing"}


@second_step.finish
def second_step(server, facts):
    server.end(facts["task"], "processed")
    stock, ship = steps(server, facts["task"])
    equal((stock["state"], stock["output"]), ("processed", {"n": 1.10}))
    done_by("second-step", ship)


@Play
def failed_twice(server):
    task = start(server, "failed-twice",
                 call("stock", "failed-twice", failures={**RETRY, "delay": "PT0.01S"}))
    for _ in range(2):
        server.reply(server.request("failed-twice"),
                     error={"type": "busy", "transient": True, "retryAfterMs": 100})
    server.end(task, "processing")
    act(server, task, "suspend")
    return {"task": task, "state": "processing"}


@failed_twice.finish
def failed_twice(server, facts):
    act(server, facts["task"], "resume")
    task = server.end(facts["task"], "processed")
    equal(task["output"]["attempt"], 3)
    attempts = server.get(f"/v1/tasks/{facts['task']}/attempts")["attempts"]
    equal(sorted(a["attempt"] for a in attempts), [1, 2, 3])


@Play
def retry_later(server):
    """Its repetition is due an hour after the failure."""
    task = start(server, "retry-later", call("stock", "retry-later", failures=RETRY))
    server.reply(server.request("retry-later"), error={"type": "busy", "transient": True})
    return {"task": task, "state": "processing"}


@retry_later.finish
def retry_later(server, facts):
    server.end(facts["task"], "processed")
    done_by("retry-later", steps(server, facts["task"])[0])


@Play
def circuit_open(server):
    task = start(server, "circuit-open", call("stock", "circuit-open", failures=RETRY))
    server.reply(server.request("circuit-open"), error={
        "type": "circuit-open", "target": "warehouse", "retryAfterMs": 60000, "transient": True})
    return {"task": task}


@circuit_open.finish
def circuit_open(server, facts):
    server.end(facts["task"], "processed")


@Play
def timer(server):
    task = start(server, "timer", {"pause": {"wait": {"hours": 1}}}, {"mark": {"set": {"m": 1}}})
    return {"task": task}


@timer.finish
def timer(server, facts):
    equal(server.end(facts["task"], "processed")["output"], {"m": 1})


@Play
def timeout(server):
    """Over its time when the server comes back, which was its own absence."""
    step = call("stock", "timeout")
    step["stock"]["timeout"] = {"after": {"hours": 1}}
    return {"task": start(server, "timeout", step), "state": "pending"}


@timeout.finish
def timeout(server, facts):
    server.end(facts["task"], "processed", "compensated")


@Play
def tried_again(server):
    """Inside a `try`, between two of its retries."""
    body = {"try": [call("stock", "tried-again", failures=PARK)], "catch": {
        "errors": {"with": {"status": 422}},
        "retry": {"delay": {"hours": 1}, "limit": {"attempt": {"count": 3}}}}}
    task = start(server, "tried-again", {"attempt": body}, {"mark": {"set": {"m": 1}}})
    server.reply(server.request("tried-again"), error={"type": "no", "status": 422, "title": "no"})
    return {"task": task, "state": "processing"}


@tried_again.finish
def tried_again(server, facts):
    equal(server.end(facts["task"], "processed")["output"], {"m": 1})


@Play
def http_call(server):
    """The service was down when it was called."""
    step = {"book": {"call": "http", "with": {"method": "post", "endpoint": url(SERVICE) + "/book"},
                     "metadata": {"reeve": {"failures": RETRY, "compensate": "none"}}}}
    task = start(server, "http-call", step)
    until(lambda: steps(server, task)[0]["state"] == "pending" and
          server.get(f"/v1/tasks/{task}/attempts")["attempts"], "the call has failed")
    return {"task": task}


@http_call.finish
def http_call(server, facts):
    equal(server.end(facts["task"], "processed")["output"], {"booked": True})


@Play
def old_expression(server):
    """`${` inside a longer text: later releases refuse it at publication. What is published stays
    readable, and its task ends somehow."""
    step = {"book": {"call": "http", "metadata": {"reeve": {"failures": PARK}}, "with": {
        "method": "delete", "endpoint": url(SERVICE) + "/bookings/${ .sku }"}}}
    task = start(server, "old-expression", call("stock", "old-expression"), step)
    return {"task": task, "state": "pending"}


@old_expression.finish
def old_expression(server, facts):
    server.end(facts["task"], "error", "compensated", "processed")
    done_by("old-expression", steps(server, facts["task"])[0])


# ---- parked, suspended


@Play
def parked(server):
    task = start(server, "parked", call("stock", "parked", failures=PARK))
    server.reply(server.request("parked"), error={"type": "no", "status": 422, "title": "no stock"})
    server.end(task, "error")
    return {"task": task, "state": "error"}


@parked.finish
def parked(server, facts):
    task = server.get(f"/v1/tasks/{facts['task']}")
    equal((task["error"]["type"], task["error"]["title"]), ("no", "no stock"))
    equal(alert_kinds(server, facts["task"]), ["failed"])
    act(server, facts["task"], "resubmit", reason="there is stock again")
    server.end(facts["task"], "processed")
    equal(alert_kinds(server, facts["task"]), [])


@Play
def parked_inline(server):
    """A step without an agent raised."""
    raised = {"error": {"type": "https://shop.example/no", "status": 400, "title": "no"}}
    step = call("stock", "parked-inline", pivot=True)
    del step["stock"]["metadata"]["reeve"]["compensate"]
    task = start(server, "parked-inline", step, {"fail": {"raise": raised}})
    server.reply(server.request("parked-inline"), output={})
    server.end(task, "error")
    return {"task": task, "state": "error"}


@parked_inline.finish
def parked_inline(server, facts):
    assert alert_kinds(server, facts["task"]), "no alert"
    cures = {cure["cure"]: cure for cure in
             server.get(f"/v1/tasks/{facts['task']}/explain")["cures"]}
    # A release that did not record the step ends with its task.
    cure = cures.get("settle-done") or cures["settle-task"]
    step = {"step": cure["step"]} if "step" in cure else {}
    act(server, facts["task"], "settle", finding="done", output={"by": "hand"}, **step)
    server.end(facts["task"], "processed")
    equal(server.get(f"/v1/tasks/{facts['task']}")["output"], {"by": "hand"})


@Play
def suspended(server):
    task = start(server, "suspended", call("stock", "suspended"))
    act(server, task, "suspend", reason="stocktaking")
    return {"task": task, "state": "pending"}


@suspended.finish
def suspended(server, facts):
    assert "suspendedAt" in server.get(f"/v1/tasks/{facts['task']}")
    equal(steps(server, facts["task"])[0]["state"], "pending")
    act(server, facts["task"], "resume")
    server.end(facts["task"], "processed")


@Play
def suspended_undo(server):
    task = start(server, "suspended-undo", call("stock", "suspended-undo"),
                 call("pay", "suspended-undo"))
    server.reply(server.request("suspended-undo"), output={"n": 2})
    act(server, task, "suspend")
    act(server, task, "cancel", reason="recalled")
    return {"task": task, "state": "compensating"}


@suspended_undo.finish
def suspended_undo(server, facts):
    act(server, facts["task"], "resume")
    server.end(facts["task"], "compensated")


# ---- undo under way


def three_done(server, name):
    task = start(server, name, *(call(step, name, failures=PARK, completeBy="PT4S")
                                 for step in ("a", "b", "c")))
    for number in range(3):
        equal(server.reply(server.request(name), output={"n": number}), 200)
    server.end(task, "processed")
    return task


@Play
def undo_half(server):
    """Of three compensations one is done, the next one waits."""
    task = three_done(server, "undo-half")
    act(server, task, "undo", reason="a recall")
    server.reply(server.request("undo-half"), output={})
    return {"task": task, "state": "compensating"}


@undo_half.finish
def undo_half(server, facts):
    server.end(facts["task"], "compensated")
    rows = steps(server, facts["task"])
    equal([row["reference"].rsplit("/", 1)[1] for row in rows], ["a", "b", "c", "unc", "unb", "una"])
    for row, number in zip(rows[4:], (1, 0)):
        equal(row["input"], {"key": rows[number]["step"], "was": {"n": number},
                             "outcome": "completed"})
        done_by("undo-half", row)


@Play
def undo_failed(server):
    task = three_done(server, "undo-failed")
    act(server, task, "undo", reason="a recall")
    until(lambda: server.get(f"/v1/tasks/{task}")["state"] == "error" or refuse(server),
          "the undo has failed")
    return {"task": task, "state": "error"}


def refuse(server):
    for request in server.poll("undo-failed", wait_ms=1000)["requests"]:
        server.reply(request, error={"type": "no", "status": 422, "title": "no"})
    return False


@undo_failed.finish
def undo_failed(server, facts):
    equal(alert_kinds(server, facts["task"]), ["undo-failed"])
    act(server, facts["task"], "resubmit", reason="it works again")
    server.end(facts["task"], "compensated")


@Play
def redone(server):
    """Another input, and the undo of the old one before it."""
    task = start(server, "redone", call("stock", "redone", failures=PARK))
    server.reply(server.request("redone"), error={"type": "no", "status": 422, "title": "no",
                                                  "effect": "unknown"})
    server.end(task, "error")
    act(server, task, "resubmit", input={"sku": "B"}, undoFirst=True, reason="B is the same")
    return {"task": task, "state": "compensating"}


@redone.finish
def redone(server, facts):
    server.end(facts["task"], "processed")
    rows = steps(server, facts["task"])
    equal([row["input"].get("sku") for row in rows], ["A", "B", None])


# ---- what has ended


def shown(server, task):
    """What every later release shows of a task that has ended."""
    found = server.get(f"/v1/tasks/{task}")
    return [{key: found.get(key) for key in ("task", "workflow", "state", "input", "output", "key")},
            [{key: row.get(key) for key in ("step", "state", "reference", "input", "output")}
             for row in steps(server, task)]]


@Play
def processed(server):
    task = three_done(server, "processed")
    return {"task": task, "state": "processed", "shown": shown(server, task)}


@processed.finish
def processed(server, facts):
    equal(shown(server, facts["task"]), facts["shown"])
    act(server, facts["task"], "undo", reason="a recall")
    server.end(facts["task"], "compensated")


@Play
def compensated(server):
    task = start(server, "compensated", call("stock", "compensated"), call("pay", "compensated"))
    server.reply(server.request("compensated"), output={"n": 1})
    server.reply(server.request("compensated"), error={"type": "no", "status": 402, "title": "no",
                                                       "effect": "none"})
    server.reply(server.request("compensated"), output={})
    server.end(task, "compensated")
    return {"task": task, "state": "compensated", "shown": shown(server, task)}


@compensated.finish
def compensated(server, facts):
    equal(shown(server, facts["task"]), facts["shown"])


@Play
def cancelled(server):
    task = start(server, "cancelled", call("stock", "cancelled"))
    act(server, task, "cancel", reason="never mind")
    server.end(task, "cancelled")
    return {"task": task, "state": "cancelled", "shown": shown(server, task)}


@cancelled.finish
def cancelled(server, facts):
    equal(shown(server, facts["task"]), facts["shown"])
    error = server.get(f"/v1/tasks/{facts['task']}")["error"]
    equal((error["by"].split()[0], error["detail"]), ("ann", "never mind"))


@Play
def skipped(server):
    """Skipped by an operator who has seen the late reply."""
    task = start(server, "skipped", call("stock", "skipped", failures=PARK), call("pay", "skipped"))
    request = server.request("skipped")
    server.reply(request, error={"type": "no", "status": 422, "title": "no", "effect": "unknown"})
    server.end(task, "error")
    equal(server.reply(request, output={"late": 2}), 410)
    act(server, task, "skip", step=1, output={"n": 3}, done=True, lateSeen=1, reason="I have seen it")
    return {"task": task, "state": "processing"}


@skipped.finish
def skipped(server, facts):
    server.end(facts["task"], "processed")
    rows = steps(server, facts["task"])
    equal((rows[0]["state"], rows[0]["output"]), ("skipped", {"n": 3}))
    late = server.get(f"/v1/tasks/{facts['task']}/late-replies")["lateReplies"]
    equal([reply["output"] for reply in late], [{"late": 2}])


# ---- what is kept beside tasks


@Play
def webhook(server):
    """Messages wait for a webhook that was dead."""
    task = start(server, "webhook", call("stock", "webhook"), correlationId="c-2",
                 replyTo={"url": url(HOOK) + "/orders"})
    with open(server.store + ".webhook-secret", encoding="ascii") as file:
        secret = [line.strip() for line in file if line.startswith("whsec_")][0]
    return {"task": task, "secret": secret, "state": "pending"}


@webhook.finish
def webhook(server, facts):
    server.end(facts["task"], "processed")
    until(lambda: len(server.hook.heard) >= 4 and server.get("/health/live"), "all messages", 60)
    heard = {}
    for headers, body in server.hook.heard:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(facts["secret"][len("whsec_"):])
        sign = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        equal(headers["webhook-signature"], "v1," + sign)
        message = json.loads(body)
        equal((message["task"], message["correlationId"]), (facts["task"], "c-2"))
        heard.setdefault(message["number"], message["kind"])
    equal(list(heard.items()), [(1, "received"), (2, "started"), (3, "step-completed"),
                                (4, "processed")])


@Play
def paused_agent(server):
    """Paused by an operator, and limited."""
    body = {"concurrent": 1, "perSecond": 50, "by": "ann"}
    equal(server.ask("POST", "/v1/agents/paused-agent/limit", body)[0], 200)
    equal(server.ask("POST", "/v1/agents/paused-agent/pause", {"by": "ann"})[0], 200)
    return {"task": start(server, "paused-agent", call("stock", "paused-agent")), "state": "pending"}


@paused_agent.finish
def paused_agent(server, facts):
    rows = [row for row in server.get("/v1/agents")["agents"] if row["agent"] == "paused-agent"]
    equal((rows[0]["paused"], rows[0]["concurrent"], rows[0]["perSecond"]), (True, 1, 50))
    equal(steps(server, facts["task"])[0]["state"], "pending")
    equal(server.ask("POST", "/v1/agents/paused-agent/resume", {"by": "ann"})[0], 200)
    server.end(facts["task"], "processed")


@Play
def bulk(server):
    """A command for many tasks, paused before its first one."""
    tasks = [start(server, "bulk", call("stock", "bulk"))]
    tasks += [server.submit("bulk") for _ in range(3)]
    selection = server.ask("POST", "/v1/selections?workflow=shop/bulk", {"by": "ann"})[1]["selection"]
    path = f"/v1/selections/{selection}"
    equal(server.ask("POST", path + "/bulk", {"command": "cancel", "rate": 3, "by": "ann",
                                              "reason": "a recall"})[0], 200)
    equal(server.ask("POST", path + "/pause", {"by": "ann"})[0], 200)
    return {"tasks": tasks, "selection": selection}


@bulk.finish
def bulk(server, facts):
    path = f"/v1/selections/{facts['selection']}"
    found = server.get(path)
    equal((found["state"], found["tasks"]), ("paused", 4))
    equal(server.ask("POST", path + "/resume", {"by": "ann"})[0], 200)
    for task in facts["tasks"]:
        server.end(task, "cancelled", "processed")
    until(lambda: server.get(path)["state"] == "ended", "the command has ended")


@Play
def reported(server):
    body = {"source": "relay:shop", "message": "a row is too old"}
    equal(server.ask("POST", "/v1/alerts", body)[0], 201)
    status, other = server.ask("POST", "/v1/alerts", {**body, "source": "relay:bank"})
    equal(status, 201)
    equal(server.ask("POST", f"/v1/alerts/{other['alert']}/ack", {"by": "ann"})[0], 200)
    return body


@reported.finish
def reported(server, facts):
    found = [alert for alert in server.get("/v1/alerts")["alerts"] if alert["kind"] == "reported"]
    equal([(alert["source"], alert["message"]) for alert in found],
          [(facts["source"], facts["message"])])
    equal(server.ask("POST", "/v1/alerts", facts)[0], 200)


@Play
def keys(server):
    made = {}
    for role in ("author", "submitter", "observer"):
        made[role] = server.ask("POST", "/v1/keys", {"role": role, "name": role})[1]
    equal(server.ask("DELETE", f"/v1/keys/{made['observer']['id']}")[0], 200)
    return {role: made[role]["key"] for role in made}


@keys.finish
def keys(server, facts):
    for role, status in (("author", 200), ("submitter", 200), ("observer", 401)):
        who = {"Authorization": "Bearer " + facts[role]}
        equal((role, server.ask("GET", "/v1/workflows", headers=who)[0]), (role, status))
    equal(server.ask("GET", "/v1/workflows", headers={"Authorization": "Bearer x"})[0], 401)


# ---- what an agent has in hand when the server is killed: last, so that nothing expires before


@Play
def handed_out(server):
    """An attempt is open, and its agent never heard of again; then it answers after all."""
    task = start(server, "handed-out", call("stock", "handed-out", completeBy="PT4S"))
    return {"task": task, "request": server.request("handed-out"), "state": "processing"}


@handed_out.finish
def handed_out(server, facts):
    task = server.end(facts["task"], "processed")
    equal((task["output"]["key"], task["output"]["attempt"]), (facts["request"]["step"], 2))
    assert task["output"]["fence"] > facts["request"]["fence"], task
    equal(server.reply(facts["request"], output={"late": 1}), 410)
    late = server.get(f"/v1/tasks/{facts['task']}/late-replies")["lateReplies"]
    equal([reply["output"] for reply in late], [{"late": 1}])


@Play
def undo_handed_out(server):
    task = three_done(server, "undo-handed-out")
    act(server, task, "undo", reason="a recall")
    server.request("undo-handed-out")
    return {"task": task, "state": "compensating"}


@undo_handed_out.finish
def undo_handed_out(server, facts):
    server.end(facts["task"], "compensated")


@Play
def no_undo(server):
    """Compensation stops at a step that does not say how it is undone."""
    bare = call("stock", "no-undo")
    del bare["stock"]["metadata"]
    task = start(server, "no-undo", bare, call("pay", "no-undo", completeBy="PT4S"))
    server.reply(server.request("no-undo"), output={})
    server.request("no-undo")
    act(server, task, "cancel", reason="wrong price")
    return {"task": task}


@no_undo.finish
def no_undo(server, facts):
    until(lambda: "no-compensation" in alert_kinds(server, facts["task"]), "its alert")
    act(server, facts["task"], "cancel", abandon=True, reason="undone by hand")
    server.end(facts["task"], "cancelled")


@Play
def revoked(server):
    """Cancelled while an agent is at work; nothing is undone until that is over."""
    task = start(server, "revoked", call("stock", "revoked", completeBy="PT4S"))
    request = server.request("revoked")
    act(server, task, "cancel", reason="changed my mind")
    return {"task": task, "request": request, "state": "compensating"}


@revoked.finish
def revoked(server, facts):
    server.end(facts["task"], "compensated")
    row = steps(server, facts["task"])[1]
    equal((row["input"]["outcome"], row["input"]["key"]), ("unknown", facts["request"]["step"]))
