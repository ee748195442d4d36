"""tools/tidy_tree.py - the project as tools/tidy reads it: files, rooms, rules."""
import functools
import os
import re
import subprocess

# Rooms that compute and do nothing else: no clock, file, thread, socket, locale or environment.
PURE = ("base", "json", "http", "expr", "workflow", "core", "store", "notify",
        "observe", "dispatch", "scheduler", "scheduler/batch", "scheduler/watch",
        "scheduler/queries", "scheduler/calls", "scheduler/duties", "supervisor", "client", "agent")

RULES = {}


def rule(name, bad, good):
    """Registers a rule with two small trees: one that breaks it, one that keeps it."""
    def register(check):
        RULES[name] = (check, bad, good)
        return check
    return register


TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


@functools.lru_cache(None)
def code_of(text):
    """The text without comments and without what stands in quotes; lines stay where they are."""
    def blank(match):
        found = match.group()
        if found[0] == "/":
            return " " + "\n" * found.count("\n")
        return found[0] * 2
    return TOKEN.sub(blank, text)


class Tree:
    """Paths and texts of the project, or of a canary."""

    def __init__(self, files, root=None):
        self.files = files
        self.root = root
        self.visited = 0
        self.borders = {}
        for line in files.get("tools/borders", "").splitlines():
            room, colon, seen = line.partition(":")
            if colon and not line.startswith("#"):
                self.borders[room] = seen.split()

    def visit(self, pattern):
        """The (path, text) of all files whose whole path matches."""
        for path in sorted(self.files):
            if re.fullmatch(pattern, path):
                self.visited += 1
                yield path, self.files[path]

    def room_of(self, path):
        folder = os.path.dirname(path).removeprefix("src/").removesuffix("/tbl")
        return folder if path.startswith("src/") else None

    def pure(self):
        for path, text in self.visit(r"src/.*\.[ch]"):
            if self.room_of(path) in PURE:
                yield path, text


def lines(text):
    return enumerate(text.splitlines(), 1)


INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')


def includes(text):
    for number, line in lines(text):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1) == '"', found.group(2)


def read_project():
    command = ["git", "-c", "safe.directory=*", "ls-files", "-coz", "--exclude-standard"]
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    files = {}
    for path in listed.split("\0"):
        if path and os.path.isfile(path) and not path.startswith("test/fuzz/corpus/"):
            with open(path, "rb") as file:
                raw = file.read()
            if b"\0" not in raw:
                files[path] = raw.decode(errors="replace")
    return Tree(files, os.getcwd())
