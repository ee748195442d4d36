"""parts - what a world of chaos is made of: programs, the proxy, a small disk, the server's API."""
import errno
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

INSIDE = "REEVE_CHAOS_INSIDE"  # set once this runs in a mount namespace of its own
MARK = "REEVE_CHAOS"           # in the environment of every program that is started here
PORTS = range(20000, 32000)    # below those that the system gives away, so a restart gets its own


class Broken(Exception):
    """Why this cannot go on, in a sentence."""


def wait_for(condition, seconds, what):
    """The condition's first true value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Broken(f"waited {seconds} s for {what}")
        time.sleep(0.02)


def free_ports(draw, count):
    """Ports of loopback that nobody listens at."""
    found = []
    while len(found) < count:
        port = draw.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


class Program:
    """A process that is killed, stopped and started again with the same words."""

    def __init__(self, folder, kind, name, command, env):
        self.kind, self.name, self.command, self.env = kind, name, command, env
        self.log = os.path.join(folder, "logs", name)
        self.process = None
        self.stopped = False
        self.away = False  # killed by the nemesis, not yet started again
        self.start()

    def start(self):
        # Whatever becomes of the driver, nothing is left behind.
        command = ["setpriv", "--pdeathsig", "KILL", *self.command]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, env=self.env, stdin=subprocess.PIPE,
                                            stdout=log, stderr=log)
        self.away = self.stopped = False

    def up(self):
        return not self.away and not self.stopped and self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.away = True

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped = True

    def resume(self):
        if self.stopped and not self.away:
            self.process.send_signal(signal.SIGCONT)
        self.stopped = False

    def end(self, seconds=10):
        """Asks it to end; its exit code, or None if it had to be killed."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        finally:
            self.process.stdin.close()

    def last_words(self):
        with open(self.log, errors="replace") as log:
            return (log.read().strip().splitlines() or ["it said nothing"])[-1]


class Proxy(Program):
    """The one who cuts connections; told what to do by lines."""

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def counts(self):
        """How often each fault took effect, by name."""
        with open(self.log, "rb") as log:
            log.seek(0, os.SEEK_END)
            self.tell("counts")
            line = wait_for(log.readline, 5, "the proxy's counts").decode()
        return {name: int(count) for name, count in (word.split("=") for word in line.split()[1:])}


class Disk:
    """Where the store lies: a tmpfs that can be filled or, where none can be mounted, a folder in
    which the server's files may not grow."""

    def __init__(self, path, mebibytes):
        self.path, self.full, self.full_at = path, False, 0.0
        self.server = None  # the Program whose files must not grow
        os.mkdir(path)
        self.mounted = os.environ.get(INSIDE) == "yes"
        if self.mounted:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", path],
                           check=True)

    def fill(self, left_bytes):
        self.full, self.full_at = True, time.monotonic()
        if self.mounted:
            with open(os.path.join(self.path, "ballast"), "wb") as file:
                while not self.filled(file, left_bytes):
                    pass
        else:
            size = os.path.getsize(os.path.join(self.path, "reeve.db"))
            self.limit(size + left_bytes)

    def filled(self, file, left_bytes):
        """The server goes on writing: what was free a moment ago may be its own now."""
        stat = os.statvfs(self.path)
        ballast = stat.f_bavail * stat.f_bsize - left_bytes
        try:
            if ballast > 0:
                os.posix_fallocate(file.fileno(), 0, ballast)
        except OSError as why:
            if why.errno != errno.ENOSPC:
                raise
            return False
        return True

    def limit(self, size):
        _, hard = resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE)
        soft = hard if size is None else size
        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (soft, hard))

    def free(self):
        if self.full and self.mounted:
            os.remove(os.path.join(self.path, "ballast"))
        elif self.full and self.server.process.poll() is None:
            self.limit(None)
        if self.full:
            self.full_at = time.monotonic()
        self.full = False

    def full_lately(self, seconds):
        return self.full or time.monotonic() - self.full_at < seconds

    def remove(self, copy_to):
        """Unmounts it; what is on it is copied first when somebody may want to look."""
        self.free()
        if copy_to is not None:
            shutil.copytree(self.path, copy_to)
        if self.mounted:
            subprocess.run(["umount", self.path], check=True)


class Api:
    """The server itself, past the proxy."""

    def __init__(self, port):
        self.port = port
        self.connection = None

    def get(self, path):
        """The answer as JSON; None while the server cannot be reached or is not ready."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            self.connection.request("GET", path)
            answer = self.connection.getresponse()
            body = answer.read()
            if answer.status == 200:
                return json.loads(body) if body else {}
            if answer.status != 503:
                raise Broken(f"GET {path}: {answer.status} {body.decode(errors='replace')}")
        except (OSError, http.client.HTTPException):
            self.close()
        return None

    def need(self, path):
        return wait_for(lambda: self.get(path), 15, path)

    def all(self, path, member):
        """Every item of a list that comes in pages."""
        items, after = [], ""
        while True:
            mark = "&" if "?" in path else "?"
            page = self.need(f"{path}{mark}limit=100{after}")
            items += page[member]
            if not page.get("next"):
                return items
            after = f"&after={page['next']}"

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def processes_marked(folder):
    """The pids of all processes that were started for this folder."""
    wanted = f"{MARK}={folder}".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                if wanted in environ.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def enter_namespace():
    """This program again in a mount namespace of its own, if the system allows that."""
    if INSIDE in os.environ:
        return
    how = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-Urm"]
    with tempfile.TemporaryDirectory() as probe:
        tried = subprocess.run([*how, "mount", "-t", "tmpfs", "tmpfs", probe], capture_output=True,
                               check=False)
    if tried.returncode == 0:
        os.environ[INSIDE] = "yes"
        os.execvp(how[0], [*how, sys.executable, *sys.argv])
    os.environ[INSIDE] = "no"
