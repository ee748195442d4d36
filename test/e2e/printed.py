"""printed - runs the commands that a page prints and compares what they print with the page.

A block ```console is a dialogue: a line "$ COMMAND", continued by lines "> ", and below it the
whole output. What differs in every run is compared by its form only: ids (the same id in the page
is the same id in the run), durations, instants, digests, instances. `...` in a line stands for any
text, on a line of its own for any lines. A follower of a task may see a step in progress or miss
it, so these lines are compared by their form, wherever they occur."""
import json
import os
import re
import select
import signal
import subprocess
import time

from kit import BOUND_S, REEVE

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"as\s+`([\w.-]+)`:\n+$")
DURATION = r"\d+(?:\.\d+)? (?:ms|s|m|h|d)(?: \d+ (?:ms|s|m|h))*"
ID = r"[0-9A-HJKMNP-TV-Z]{13}"
FORMS = [  # (what stands in the page, what the run may print there)
    (r"\.\.\.", ".*?"),
    (rf"\b{ID}\b", f"({ID})"),
    (r"(?<=\w at )\S+-\d+(?=, )|\bvm-\d+\b", r"\\S+-\\d+"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?: UTC|Z)",
     r"\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?(?: UTC|Z)"),
    (r"(?:in " + DURATION + r"|undone)$", "(?:in " + DURATION.replace("\\", "\\\\") + "|undone)"),
    (DURATION, DURATION.replace("\\", "\\\\")),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", r"\\w{3}, [\\w :]+ GMT"),
    (r'(?<="state":")processing(?=","status":201)', "(?:pending|processing)"),
    (r"\b\d[\d,]*/s", r"\\d[\\d,]*/s"),
    (r"(?<=reeve alerts )[0-9a-f]{8}\b", "[0-9a-f]{8}"),
    (r"\b\d+\.\d+s\b", r"\\d+\\.\\d+s"),
    (r"\b[0-9a-f]{32}\b", "[0-9a-f]{32}"),
    (r'(?<="id":")[0-9a-z]{8}(?=")', "[0-9a-z]{8}"),
    (r"\s+", r"\\s+"),
]
ANY = re.compile("|".join(f"(?P<f{n}>{page})" for n, (page, _) in enumerate(FORMS)))
FOLLOWED = re.compile(r"\s*" + DURATION + r"  ")
IN_PROGRESS = re.compile(
    r"\s*" + DURATION + r"  (?:processing|pending|compensating)\s+\S.*(?:: attempt \d+, at \S+, "
    r"complete-by in " + DURATION + r"|: attempt \d+, again in " + DURATION +
    r", after: \S.*|: waits, continues in " + DURATION + r"|: [^,]+)$")
JOB_ENDED = re.compile(r"^bash: line \d+: +\d+ (?:Killed|Terminated).*\n", re.MULTILINE)
# A reader types slowly enough for what goes on meanwhile; a test asks again.
ASKS = re.compile(r"(?:reeve (?:show|watch|alerts|explain|status|tasks)|cat|"
                  r"curl .*Idempotency-Key.*|curl(?!.* -[dX] ))(?: |$)")
LOOP = r"""exec 3<&0 </dev/null; code=0
while IFS= read -r -d '' command <&3; do
    eval "(exit $code)
$command"
    code=$?
    printf '\036%d\036' $code
done
kill $(jobs -p); wait"""
AGENT = re.compile(r"reeve agent exec (\S+) ")
READY = "until reeve tasks >/dev/null 2>&1; do kill -0 $! || break; done"


def blocks(text):
    """(language, content, the name under which the page has it saved)"""
    for found in BLOCK.finditer(text):
        saved = SAVED.search(text[:found.start()])
        yield found.group(1), found.group(2), saved and saved.group(1)


def dialogue(content):
    """(command, output) of a block."""
    said = []
    for line in content.splitlines():
        if line.startswith("$ "):
            said.append([line[2:], []])
        elif line.startswith("> ") and said[-1][0].endswith("\\") and not said[-1][1]:
            said[-1][0] += "\n" + line[2:]
        else:
            said[-1][1].append(line)
    return said


def form(line):
    """The line as a pattern; its ids are the groups."""
    pattern, at = "", 0
    for found in ANY.finditer(line):
        pattern += re.escape(line[at:found.start()])
        pattern += FORMS[int(found.lastgroup[1:])][1].replace("\\\\", "\\")
        at = found.end()
    return re.compile(pattern + re.escape(line[at:]))


def settled(lines):
    kept = [line for line in lines if not (FOLLOWED.match(line) and IN_PROGRESS.match(line))]
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


class Page:
    """Whether the runs of a page agree with it; remembers which id is which."""

    def __init__(self):
        self.ids = {}

    def same_line(self, page, run):
        found = form(page.strip()).fullmatch(run.strip())
        if not found:
            return False
        theirs = re.findall(rf"\b{ID}\b", page)
        return all(self.ids.setdefault(a, b) == b for a, b in zip(theirs, found.groups()))

    def same(self, page, run):
        """Whether all lines agree."""
        ids = dict(self.ids)
        same = self.same_lines(page, run)
        if not same:
            self.ids = ids
        return same

    def same_lines(self, page, run):
        page, run = settled(page), settled(run)
        at = 0
        for number, line in enumerate(page):
            if line.strip() == "...":
                if number + 1 == len(page):
                    return True
                following = page[number + 1]
                while at < len(run) and not form(following.strip()).fullmatch(run[at].strip()):
                    at += 1
                continue
            if at == len(run) or not self.same_line(line, run[at]):
                return False
            at += 1
        return at == len(run)


class Shell:
    """A shell that is given one command at a time."""

    def __init__(self, folder, variables):
        self.process = subprocess.Popen(
            ["bash", "-c", LOOP], cwd=folder, env=variables, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=BOUND_S)
        except subprocess.TimeoutExpired:
            pass
        finally:  # what the page left running, such as an agent's commands
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.stdout.close()
            self.process.wait()

    def run(self, command):
        """(exit code, output)"""
        self.process.stdin.write(command.encode() + b"\0")
        self.process.stdin.flush()
        said, end = b"", time.monotonic() + BOUND_S
        while not (marked := re.search(rb"\036(\d+)\036$", said)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise AssertionError(f"not within its time: {command}: {said.decode()}")
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, f"the shell ended: {command}: {said.decode()}"
            said += more
        text = said[:marked.start()].decode().replace("\r\n", "\n")
        return int(marked.group(1)), JOB_ENDED.sub("", text)


def answer(shell, page, command, output):
    """Runs one command. What differs from the page, or nothing."""
    for theirs, ours in page.ids.items():
        command = command.replace(theirs, ours)
    if command.endswith("&") and ">" not in command:
        command = command[:-1] + ">/dev/null 2>&1 &"
    _, said = shell.run(command)
    end = time.monotonic() + BOUND_S / 2
    while not page.same(output, said.splitlines()):
        if not ASKS.match(command) or time.monotonic() > end:
            return f"$ {command}\npage:\n" + "\n".join(output) + "\nrun:\n" + said
        time.sleep(0.05)
        _, said = shell.run(command)
    if command.startswith("reeve serve"):
        shell.run(READY)
    for agent in AGENT.findall(command):
        shell.run(f"until reeve agents | grep -q '^{agent}  *[1-9]'; do kill -0 $! || break; done")
    return ""


def save(text, folder):
    """The files that a page has its reader save."""
    for _, content, saved in blocks(text):
        if saved:
            with open(os.path.join(folder, saved), "w", encoding="utf-8") as file:
                file.write(content)


def run(text, folder, variables):
    """Saves the files of a page and runs its dialogues. (what differs, the tasks at the end)"""
    page, differs = Page(), []
    save(text, folder)
    with Shell(folder, variables) as shell:
        for language, content, _ in blocks(text):
            if language == "console":
                for command, output in dialogue(content):
                    differs.append(answer(shell, page, command, output))
        code, tasks = shell.run("reeve tasks --limit 100 --json")
    return "\n".join(filter(None, differs)), json.loads(tasks)["tasks"] if code == 0 else []


def environment(port):
    """The page's own server listens where no other one is."""
    return dict(os.environ, PATH=os.path.dirname(REEVE) + ":" + os.environ["PATH"], USER="ann",
                REEVE_LISTEN=f"127.0.0.1:{port}", REEVE_URL=f"http://127.0.0.1:{port}")
