"""kit - the real server program under the hands of a test, and TAP of what came out.

A test script imports what it needs, marks its functions with @test and ends with sys.exit(main()).
Its first argument is the program."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback

REEVE = os.path.abspath(sys.argv[1])
BOUND_S = 120
NODE_MAJOR_MIN = 18
TESTS = []


class Skip(Exception):
    """What this test needs is not here; the text says what."""


def test(function):
    TESTS.append(function)
    return function


def equal(found, wanted):
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


def until(condition, what, bound_s=BOUND_S):
    """The condition's first true value. Asked without a pause, it would take a processor from the
    server that it waits for."""
    pause_s = 0.001
    end = time.monotonic() + bound_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        threading.Event().wait(pause_s)
        pause_s = min(2 * pause_s, 0.02)
    raise AssertionError(f"not within {bound_s} s: {what}")


def speak_tls(server):
    """An HTTP server of Python's takes a certificate that nobody vouches for; its URL."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = os.path.join(folder, "key"), os.path.join(folder, "certificate")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
                        certificate, "-days", "1", "-subj", "/CN=127.0.0.1", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return f"https://127.0.0.1:{server.server_address[1]}"


class Server:
    """A server on a store of its own; may be killed and started again on it."""

    def __init__(self, store=None, options=()):
        self.folder = tempfile.mkdtemp(prefix="reeve-e2e-")
        self.store = store or os.path.join(self.folder, "reeve.db")
        self.process = None
        self.options = options
        self.key = None  # the API key that goes with each request
        self.polls = 0
        try:
            self.start()
        except BaseException:
            self.kill()
            raise

    def kill(self):
        """Of a test that has failed: nothing is left behind."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """It ends by itself: so a sanitizer looks for leaks, and its lines are counted."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=BOUND_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        shutil.rmtree(self.folder)

    def start(self, port=0):
        with open(os.path.join(self.folder, "log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [REEVE, "serve", "--listen", f"127.0.0.1:{port}", "--store", self.store,
                 *self.options],
                stdout=subprocess.PIPE, stderr=log, text=True)
        self.store_line = self.process.stdout.readline()
        self.port = int(re.search(r":(\d+)$", self.process.stdout.readline()).group(1))

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as log:
            return log.read()

    def rss_mib(self):
        """Resident memory, in MiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024

    def kill_and_start(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def stop(self, number=signal.SIGTERM):
        began = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(timeout=BOUND_S)
        return code, time.monotonic() - began

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=BOUND_S)

    def client(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND_S)

    def open(self, method, path, body=None, headers=None):
        """Sends a request and does not wait for its answer."""
        connection = self.client()
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        who = {"Authorization": "Bearer " + self.key} if self.key else {}
        connection.request(method, path, body, {**who, **(headers or {})})
        return connection

    def ask(self, method, path, body=None, headers=None):
        connection = self.open(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        kind = answer.headers.get("Content-Type", "")
        if "sqlite3" in kind:
            return answer.status, text
        return answer.status, json.loads(text) if "json" in kind else text.decode()

    def get(self, path):
        status, body = self.ask("GET", path)
        equal(status, 200)
        return body

    def publish(self, text):
        equal(self.ask("PUT", "/v1/workflows", text)[0], 201)

    def submit(self, name, **more):
        status, body = self.ask("POST", "/v1/tasks",
                                {"workflow": "shop/" + name, "input": {"sku": "A"}, **more})
        equal(status, 201)
        return body["task"]

    def poll(self, agent, instance="i1", boot="b1", poll=None, wait_ms=20000, **more):
        self.polls += 1
        body = {"instance": instance, "boot": boot, "waitMs": wait_ms, "max": 8,
                "poll": poll or f"p{self.polls}", **more}
        status, answer = self.ask("POST", f"/v1/agents/{agent}/requests", body)
        equal(status, 200)
        return answer

    def request(self, agent, **more):
        """The one request that a poll brings."""
        requests = self.poll(agent, **more)["requests"]
        equal(len(requests), 1)
        return requests[0]

    def reply(self, request, **result):
        """The status of the one reply."""
        item = {"step": request["step"], "token": request["token"], **result}
        status, body = self.ask("POST", "/v1/replies", {"replies": [item]})
        equal(status, 200)
        return body["results"][0]["status"]

    def end(self, task, *states):
        """Waits for one of the states."""
        revision = 0
        end = time.monotonic() + 2 * BOUND_S
        while time.monotonic() < end:
            body = self.get(f"/v1/tasks/{task}?wait=PT5S&revision={revision}")
            if body["state"] in states:
                return body
            revision = body["revision"]
        raise AssertionError(f"{task} is still {body['state']}, wanted {states}")

    def poll_until(self, agent, **more):
        """Polls until there is a request; the polls themselves wait in the server."""
        for _ in range(20):
            requests = self.poll(agent, wait_ms=2000, **more)["requests"]
            if requests:
                return requests[0]
        raise AssertionError(f"nothing for {agent}")


class TlsServer(Server):
    """A server that speaks TLS, with a certificate that vouches for itself."""

    def __init__(self, store=None, options=()):
        self.pki = tempfile.mkdtemp(prefix="reeve-pki-")
        self.make("first")
        self.use("first", "first")
        super().__init__(store, ("--tls-cert", self.file("cert.pem"), "--tls-key",
                                 self.file("key.pem"), *options))

    def __exit__(self, *_):
        super().__exit__()
        shutil.rmtree(self.pki)

    def file(self, name):
        return os.path.join(self.pki, name)

    def make(self, name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key", "-out",
                        name + ".pem", "-subj", f"/CN={name}", "-days", "2", "-addext",
                        "subjectAltName=IP:127.0.0.1"], cwd=self.pki, check=True,
                       capture_output=True)

    def use(self, cert, key):
        shutil.copy(self.file(cert + ".pem"), self.file("cert.pem"))
        shutil.copy(self.file(key + ".key"), self.file("key.pem"))

    def context(self, name="first"):
        return ssl.create_default_context(cafile=self.file(name + ".pem"))

    def connect(self):
        return self.context().wrap_socket(super().connect(), server_hostname="127.0.0.1")

    def client(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=BOUND_S,
                                           context=self.context())


def node():
    """The first one that is new enough, of those in PATH and Debian's."""
    for name in ("node", "/usr/bin/node", "/usr/bin/nodejs"):
        path = shutil.which(name)
        told = path and subprocess.run([path, "--version"], capture_output=True, text=True,
                                       timeout=BOUND_S, check=False).stdout
        version = re.match(r"v(\d+)\.", told or "")
        if version and int(version.group(1)) >= NODE_MAJOR_MIN:
            return path
    raise AssertionError(f"no node of version {NODE_MAJOR_MIN} or later; run `./dev setup test`")


def main():
    print(f"1..{len(TESTS)}", flush=True)
    failed = 0
    for number, function in enumerate(TESTS, 1):
        name = function.__name__
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} - {name}")
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()),
                  end="", flush=True)
    return 1 if failed else 0


