"""tools/tidy_docs.py - the rules of tools/tidy for documents and for what the programs print."""
import os
import re

from tidy_tree import lines, rule

RULES_PAGE = "docs/RULES.md"
ONE_RULE = "## 1. Durable\n\nVerified by `test_a:it_is`; I-01.\n"
TEST_A = {"test/unit/test_a.c": "static void it_is(void **state)\n", "sim/check/a.c": '"I-01"\n'}


def cited(text):
    """The rules that a text cites, with their lines: RULES 4, RULES 5 and 6, RULES 5, 6."""
    for found in re.finditer(r"\bRULES\s+(?:\*\s+)?(\d+(?:(?:, | and )\d+)*)", text):
        for number in re.findall(r"\d+", found[1]):
            yield text.count("\n", 0, found.start()) + 1, int(number)


@rule("rules that are cited exist",
      bad={RULES_PAGE: ONE_RULE, "src/core/a.c": "/* It is so (RUL" + "ES 1, 2). */\n"},
      good={RULES_PAGE: ONE_RULE, "src/core/a.c": "/* It is so (RUL" + "ES 1). */\n"})
def check_rules_cited(tree):
    page = tree.files.get(RULES_PAGE, "")
    there = {int(number) for number in re.findall(r"^## (\d+)\. ", page, re.MULTILINE)}
    for path, text in tree.visit(r"(src|include|sim|test|examples|docs|tools)/(?!tidy$).*"):
        for line, number in cited(text):
            if number not in there:
                yield path, line, f"{RULES_PAGE} has no rule {number}"
        for found in re.finditer(r"\bDESIGN \d", text):
            yield path, text.count("\n", 0, found.start()) + 1, f"cite {RULES_PAGE}: RULES <number>"


@rule("tests that the rules name exist",
      bad={RULES_PAGE: ONE_RULE.replace("it_is", "it_was"), **TEST_A},
      good={RULES_PAGE: ONE_RULE, **TEST_A})
def check_rules_shown(tree):
    programs = {}
    for path, text in tree.files.items():
        if re.match(r"(test|sim)/", path):
            programs.setdefault(os.path.basename(path).removesuffix(".c"), []).append(text)
    checkers = {name for path, text in tree.files.items() if path.startswith("sim/")
                for name in re.findall(r'"([A-Z]-\d\d)"', text)}
    for path, text in tree.visit(re.escape(RULES_PAGE)):
        for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            line = text.count("\n", 0, text.index(section)) + 1
            number, _, shown = section.partition(".")[0], *section.partition("Verified by ")[1:]
            if not shown:
                yield path, line, f"no test shows rule {number}"
            for program, _, case in re.findall(r"`(\w+)(:(\w+))?`", shown):
                if not any(re.search(rf"\b{case}\b", text) for text in programs.get(program, [])):
                    yield path, line, f"rule {number}: there is no test {program} {case}"
            for checker in re.findall(r"\b[A-Z]-\d\d\b", shown):
                if checker not in checkers:
                    yield path, line, f"rule {number}: the simulator has no {checker}"


RELIABILITY_PAGE = "docs/RELIABILITY.md"
RELAXES = re.compile(r"no longer f(?:ind|ound)|checkers allow|requires? less")
A_RELAXATION = {"docs/decisions/007-a.md": "**What the checkers no longer find.** Cats.\n"}


@rule("decisions that relax a checker are listed",
      bad={RELIABILITY_PAGE: "[001](decisions/001-b.md)\n", **A_RELAXATION},
      good={RELIABILITY_PAGE: "## Where a checker requires less\n[007](decisions/007-a.md)\n",
            **A_RELAXATION})
def check_relaxations_listed(tree):
    page = tree.files.get(RELIABILITY_PAGE, "")
    listed = page.partition("## Where a checker requires less\n")[2].partition("\n## ")[0]
    for path, text in tree.visit(r"docs/decisions/.*\.md"):
        found = RELAXES.search(text)
        if found and path.removeprefix("docs/") not in listed:
            yield path, text.count("\n", 0, found.start()) + 1, f"add a row to {RELIABILITY_PAGE}"


DOCUMENTS = r"(README|CHANGELOG)\.md|(docs|examples)/.*\.md"
CODE_BLOCK = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
IN_CODE = re.compile(r"`[^`\n]*`")
# A file by its name (step.c), a place in the tree (test/e2e/backup), a test (program:case).
NAMED_FILE = re.compile(r"(?<![\w./<>*-])((?:[\w.-]+/)*[\w-]+\.(?:c|h|def|py|pml|md))(?![\w/])")
NAMED_PLACE = re.compile(r"`((?:src|include|sim|test|tools|docs|model)/[\w./-]+)`")
NAMED_TEST = re.compile(r"`(?:test_\w+:)?([a-z0-9]+(?:_[a-z0-9]+){3,})`")


def prose_of(text):
    """A document without its blocks of code; lines stay where they are."""
    return CODE_BLOCK.sub(lambda found: "\n" * found.group().count("\n"), text)


@rule("files and tests that the documents name exist",
      bad={"docs/a.md": "`core/gone.c` and `it_is_not_there`\n", "src/core/b.c": ""},
      good={"docs/a.md": "`core/b.c`, b.c, `src/core/`, `it_is_there_now`\n```\nyours.c\n```\n",
            "src/core/b.c": "", "test/unit/test_b.c": "static void it_is_there_now(void)\n"})
def check_named(tree):
    ends, tests = set(), set()
    for path, text in tree.files.items():
        parts = path.split("/")
        ends.update("/".join(parts[i:]) for i in range(len(parts)))
        ends.update("/".join(parts[:i]) for i in range(1, len(parts)))
        if not path.endswith(".md"):
            tests.update(re.findall(r"\b[a-z0-9]+(?:_[a-z0-9]+){3,}\b", text))
    for path, text in tree.visit(r"(README|CHANGELOG)\.md|docs/(?!guide/).*\.md"):
        for number, line in lines(prose_of(text)):
            for pattern, there in ((NAMED_FILE, ends), (NAMED_PLACE, ends), (NAMED_TEST, tests)):
                for name in pattern.findall(line):
                    name = name.removeprefix("./").removeprefix("../").rstrip("/.")
                    name = name.removeprefix("../")
                    if name not in there and "NAME" not in name:
                        yield path, number, f"there is no {name}"


PHRASES = "tools/phrases"


# The strings of a source, those that the compiler joins as one, and comments, to step over them.
SPOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:[^\'\\\n]|\\.)*\'|#include[^\n]*'
                    r'|"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', re.DOTALL)
JOINED = re.compile(r'"(\s*)"')


def texts_of(source):
    """What a source can print: its strings alone; lines stay where they are."""
    place, parts = 0, []
    for found in SPOKEN.finditer(source):
        parts.append("\n" * source.count("\n", place, found.start()))
        text = found.group()
        if text.startswith('"'):
            text = JOINED.sub(lambda gap: "\n" * gap[1].count("\n"), text[1:-1])
            parts.append("`" + text.replace("\\n", " ") + "`")
        else:
            parts.append("\n" * text.count("\n"))
        place = found.end()
    return "".join(parts)


def phrases_of(tree):
    """(pattern, plain form) of each line of the list; a line that is none has no pattern."""
    for row in tree.files.get(PHRASES, "").splitlines():
        phrase, arrow, plain = row.partition(" -> ")
        if not row.startswith("#"):
            pattern = r"(?<!\w)(?:" + phrase.replace(" ", r"\s+") + r")(?!\w)"
            yield (re.compile(pattern, re.IGNORECASE) if arrow else None), plain or row


def phrases_in(path, prose, phrases):
    for pattern, plain in phrases:
        for found in pattern.finditer(prose):
            number = prose.count("\n", 0, found.start()) + 1
            what = " ".join(found.group().split())
            yield path, number, f'"{what}": write {plain} ({PHRASES})'


@rule("documents are written in plain English",
      bad={PHRASES: "# why\nas ever -> unchanged\n", "docs/a.md": "It is as\never.\n"},
      good={PHRASES: "as ever -> unchanged\n",
            "docs/a.md": "It has everything, as everybody knows: `as ever`.\n"})
def check_phrases(tree):
    phrases = list(phrases_of(tree))
    if not phrases:
        yield PHRASES, 1, "there are no phrases"
    for pattern, row in phrases:
        if pattern is None:
            yield PHRASES, 1, f'"{row}" has no " -> " and what to write instead'
    phrases = [one for one in phrases if one[0] is not None]
    for path, text in tree.visit(DOCUMENTS):
        yield from phrases_in(path, IN_CODE.sub("`", prose_of(text)), phrases)


@rule("what the programs print is written in plain English",
      bad={PHRASES: "as ever -> unchanged\n",
           "src/cli/a.c": 'static const char *told = "it is as "\n    "ever";\n'},
      good={PHRASES: "as ever -> unchanged\n",
            "src/cli/a.c": '/* "as ever" */\nstatic const char *told[] = {"it is as", "ever"};\n'})
def check_texts(tree):
    phrases = [one for one in phrases_of(tree) if one[0] is not None]
    for path, text in tree.visit(r"src/.*\.(c|h|def)"):
        yield from phrases_in(path, texts_of(text), phrases)


LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")


def anchors_of(text):
    """The anchors of a page's headings, as code hosts name them."""
    titles = re.findall(r"^#+ (.*)", prose_of(text), re.MULTILINE)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@rule("links of the documents lead somewhere",
      bad={"docs/a.md": "[b](b.md#gone)\n", "docs/b.md": "# Here\n"},
      good={"docs/a.md": "[b](b.md#it-is-here)\n", "docs/b.md": "# It is: here\n"})
def check_links(tree):
    folders = {os.path.dirname(path) for path in tree.files}
    for path, text in tree.visit(r".*\.md"):
        for number, line in lines(prose_of(text)):
            for target, anchor in LINK.findall(line):
                if ":" in target:
                    continue
                to = os.path.normpath(os.path.join(os.path.dirname(path), target)) \
                    if target else path
                if to not in tree.files and to not in folders:
                    yield path, number, f"there is no {to}"
                elif anchor and to.endswith(".md") and \
                        anchor[1:] not in anchors_of(tree.files.get(to, "")):
                    yield path, number, f"{to} has no heading {anchor}"


@rule("README links every page of the documents",
      bad={"README.md": "[a](docs/a.md)\n", "docs/a.md": "", "docs/guide/b.md": ""},
      good={"README.md": "[a](docs/a.md) [b](docs/guide/b.md)\n", "docs/a.md": "",
            "docs/guide/b.md": ""})
def check_readme(tree):
    linked = {target for target, _ in LINK.findall(tree.files.get("README.md", ""))}
    for path, _ in tree.visit(r"docs/(guide/)?[^/]*\.md"):
        if path not in linked:
            yield "README.md", 1, f"no link to {path}"


ALERT_KINDS, ALERT_PAGE = "src/core/tbl/alert_kind.def", "docs/guide/alerts.md"


@rule("each kind of alert is explained",
      bad={ALERT_KINDS: 'RV_ALERT_KIND(A, "a-b", "do")\n', ALERT_PAGE: "## a\n"},
      good={ALERT_KINDS: 'RV_ALERT_KIND(A, "a-b", "do")\n', ALERT_PAGE: "## a-b\n"})
def check_alerts(tree):
    for path, text in tree.visit(re.escape(ALERT_KINDS)):
        for number, line in lines(text):
            kind = re.match(r'RV_ALERT_KIND\(\w+,\s*"([^"]+)"', line)
            if kind and f"\n## {kind[1]}\n" not in "\n" + tree.files.get(ALERT_PAGE, ""):
                yield path, number, f"{ALERT_PAGE} has no heading {kind[1]}"
