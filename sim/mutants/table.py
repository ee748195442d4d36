"""The table of planted mistakes: the rows of sim/mutants/*.txt.

A row, as `mutant NAME`, is a slip that a programmer could make in one place of the product:

    mutant TOKEN_UNCHECKED
    wrong a reply counts whatever its token
    finds I-06 I-28
    file src/core/attempt.c
    @@
    -    return step->attempt != 0 && step->token == token;
    +    return step->attempt != 0;

`wrong` is what the product then does. `finds` names the checkers of the simulator that may report it
first. An optional `worlds` adds arguments for the simulator (`worlds --with relay=1`). In rooms that
the simulator does not contain, or of which it sees little, `tests` replaces `finds`: it names the
test programs, and a test case of one of them must fail (`tests test_egress test_outbound`). After
`@@` come the lines of the file as in a diff: the same (space), as it is (minus), as planted (plus).
What is the same and as it is must occur once in the file; several places of it are several `@@`. An
empty line ends the row, a line that begins with `#` between rows is a comment.
"""
import glob
import os
import re

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
EVERY_BUILD = "EVERY_BUILD"
HEAD = ("wrong", "finds", "tests", "worlds", "file")


class Malformed(Exception):
    pass


class Row:
    def __init__(self, name):
        self.name = name
        self.wrong = self.finds = self.tests = self.worlds = self.file = ""
        self.hunks = []

    @property
    def room(self):
        return os.path.dirname(self.file).removeprefix("src/")

    @property
    def expected(self):
        return self.finds or self.tests

    def plant(self, text):
        """The file's text with the mistake in it."""
        for hunk in self.hunks:
            old = "".join(line[1:] + "\n" for line in hunk if line[0] != "+")
            new = "".join(line[1:] + "\n" for line in hunk if line[0] != "-")
            count = ("\n" + text).count("\n" + old)
            if count != 1:
                raise Malformed(f"{self.name}: its text is found {count} times in {self.file}:\n"
                                + old.rstrip("\n"))
            text = ("\n" + text).replace("\n" + old, "\n" + new)[1:]
        return text


def check(row):
    missing = [word for word in ("wrong", "expected", "file") if not getattr(row, word)]
    if missing or not row.hunks:
        raise Malformed(f"{row.name}: it has no {' and no '.join(missing or ['@@'])}")
    if row.tests and (row.finds or row.worlds):
        raise Malformed(f"{row.name}: its tests find it, or the simulator, not both")
    for hunk in row.hunks:
        kinds = {line[0] for line in hunk}
        if not kinds & set("-+") or not kinds & set(" -"):
            raise Malformed(f"{row.name}: lines after @@ say what is planted, and where")


def parse(text):
    rows, row = [], None
    for number, line in enumerate(text.split("\n"), 1):
        word, _, rest = line.partition(" ")
        if row is None:
            if word == "mutant" and re.fullmatch(r"[A-Z][A-Z0-9_]*", rest):
                row = Row(rest)
            elif line and not line.startswith("#"):
                raise Malformed(f"line {number} is in no row: {line}")
        elif not line:
            check(row)
            rows.append(row)
            row = None
        elif line == "@@":
            row.hunks.append([])
        elif row.hunks and line[0] in " -+":
            row.hunks[-1].append(line)
        elif word in HEAD and rest and not row.hunks:
            setattr(row, word, rest)
        else:
            raise Malformed(f"{row.name}: line {number} cannot be read: {line}")
    if row is not None:
        raise Malformed(f"{row.name}: its file ends without a newline")
    return rows


def read():
    """All rows, and the one that is planted into every build."""
    rows = []
    for path in sorted(glob.glob(os.path.join(TOP, "sim", "mutants", "*.txt"))):
        with open(path) as file:
            try:
                rows += parse(file.read())
            except Malformed as error:
                raise Malformed(f"{os.path.relpath(path, TOP)}: {error}") from None
    always = [row for row in rows if row.name == EVERY_BUILD]
    if len(always) != 1:
        raise Malformed(f"{EVERY_BUILD} stands there {len(always)} times")
    return [row for row in rows if row.name != EVERY_BUILD], always[0]
