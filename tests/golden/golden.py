#!/usr/bin/env python3
"""Shows what a change does to everything that the program prints: some hundreds of command lines, their answers kept.

usage: golden.py take BINARY FOLDER [NAME...]
       golden.py compare OLD NEW [--wanted FILE]
       golden.py options BINARY

Before a redesign and after it:

    tests/golden/golden.py take build/release/specdec /tmp/before
    (change the program, build it)
    tests/golden/golden.py take build/release/specdec /tmp/after
    tests/golden/golden.py compare /tmp/before /tmp/after --wanted /tmp/wanted.txt

`take` runs the lines of tests/golden/commands/*.txt, or of the files named NAME alone, two at a time, and writes what
each one printed, its exit code and the files that it left to FOLDER/NAME.json; FOLDER must be empty or new. It takes
two minutes of processor time, half of that where two processors are idle. Answers are not kept in the repository: they
are the processor's and the compiler's to the last digit, and any commit's program makes its own.

A line of commands/*.txt is a line of bash, in which specdec is the program. It runs in an empty folder that shows what
the repository's root holds (traces, sim, tests, docs, analysis), as links that a line must not write to. A backslash at
its end joins it with the next; # begins a comment at the beginning of a line alone. A line that begins with

    all:       is run as it stands, with --format json and with --format csv
    varying:   measures times: its numbers are folded before they are kept

What differs from run to run or from machine to machine is replaced: the folder, the root, that of the shipped models,
the program's version, times of files, the speed of a simulation, and the number of threads where a line does not give
it.

`compare` lists differences: of JSON by key path, of CSV by column, one line for the same path of many command lines;
of text as a diff; exit codes and standard error first. A new key in JSON is listed and needs no reason. Every other
difference does, in a line of FILE:

    LINES :: PLACES :: REASON
    LINES :: PLACES within 1e-12 :: REASON

    specdec plan * :: stdout:points[].speedup within 1e-9 :: sums are formed in another order
    specdec report *--static* :: page.html* :: the title names the question
    specdec trace * :: stderr :: messages name the option

where * stands for any text, PLACES is a place as `compare` prints it (exit, stderr, stdout, stdout:KEY.PATH,
stdout:COLUMN, or a file's name in the place of stdout), and a bound holds for the relative difference of numbers.
compare exits with 1 if a difference has no reason. A line of FILE that explains nothing is named.

`options` lists what --help shows and no line uses: options, words that an option takes, tables. The figures of plot and
report take options of plan, capacity and compare, which count for them; of what draws, one figure counts for all.
"""

from __future__ import annotations

import concurrent.futures
import csv
import difflib
import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COMMANDS = HERE / "commands"
SHOWN = ("traces", "sim", "tests", "docs", "analysis", "README.md")
AT_A_TIME = 2
SECONDS = 120
DIFF_LINES = 24

# -------------------------------------------------------------------------------------------------------- command lines


@dataclass(frozen=True)
class Line:
    """A command line, and whether its numbers are times."""

    words: str
    varying: bool = False


def lines_of(text: str) -> list[Line]:
    """The command lines of a file, those of `all:` in their three forms."""
    lines: list[Line] = []
    for written in re.sub(r"\\\n\s*", "", text).splitlines():
        words = written.strip()
        if not words or words.startswith("#"):
            continue
        kind, _, rest = words.partition(": ")
        if kind == "all":
            lines += [Line(rest.strip() + how) for how in ("", " --format json", " --format csv")]
        elif kind == "varying":
            lines.append(Line(rest.strip(), varying=True))
        else:
            lines.append(Line(words))
    return lines


def all_lines(folder: Path = COMMANDS) -> dict[str, list[Line]]:
    """The command lines by file. Exits where one stands twice, for answers are told apart by it."""
    found = {path.stem: lines_of(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.txt"))}
    seen: set[str] = set()
    for line in (line for lines in found.values() for line in lines):
        if line.words in seen:
            sys.exit(f"golden.py: this line stands twice: {line.words}")
        seen.add(line.words)
    return found


# ----------------------------------------------------------------------------------------------------------------- take

SPEED = re.compile(r'("seconds": )[^,\n]+(,\s*"tokens_per_second": )[^\n]+')
NUMBER = re.compile(r"[-+~]?\d[\d.,]*(e[-+]?\d+)?%?")
MODELS = re.compile(r"(?<![\w.])/[\w./-]{0,200}?/(?:sim|share/specdec)/models\b")
ASSUMPTIONS = re.compile(r"^Assumptions: (?:.+\n?)*", re.MULTILINE)
SCRIPT = re.compile(r"(<script(?![^>]*application/json)[^>]*>).*?(</script>)", re.DOTALL)


def folded(text: str) -> str:
    """The text without its numbers; a JSON document keeps its form."""

    def without_numbers(value):
        if isinstance(value, dict):
            return {key: without_numbers(item) for key, item in value.items()}
        if isinstance(value, list):
            return [without_numbers(item) for item in value]
        if isinstance(value, str):
            return NUMBER.sub("#", value)
        return 0 if isinstance(value, (int, float)) and not isinstance(value, bool) else value

    document = parsed(text)
    if document is not None:
        return json.dumps(without_numbers(document), indent=1)
    return re.sub(r"[ \t]+", " ", NUMBER.sub("#", text))


def normalised(text: str, line: Line, names: dict[str, str]) -> str:
    """The text with a name in the place of what differs from run to run and from machine to machine."""
    text = SCRIPT.sub(r"\1...\2", text)
    for value, name in names.items():
        text = re.sub(rf"(?<![\w./]){re.escape(value)}(?![\w])", name, text)
    if MODELS.search(text):  # lines were broken by the length of this path
        text = ASSUMPTIONS.sub(lambda found: re.sub(r"\n +", " ", found[0]), MODELS.sub("<models>", text))
    text = re.sub(r'("modified": )"[^"]*"', r'\1"<time>"', text)
    if "--threads" not in line.words:
        text = re.sub(r'("threads": |^threads=|--threads N=)\d+', r"\g<1>0", text, flags=re.MULTILINE)
    text = SPEED.sub(r"\g<1>0\g<2>0", text)
    return folded(text) if line.varying else text


def described(content: bytes) -> str:
    """A file as text: a digest where it is none, of each tensor where it is safetensors."""
    digest = hashlib.sha256(content).hexdigest()
    size = int.from_bytes(content[:8], "little")
    if 2 <= size <= len(content) - 8 and content[8:9] == b"{":
        try:
            header = json.loads(content[8:8 + size])
            for tensor in (value for name, value in header.items() if name != "__metadata__"):
                begin, end = tensor["data_offsets"]
                tensor["sha256"] = hashlib.sha256(content[8 + size + begin:8 + size + end]).hexdigest()
            return json.dumps(header, indent=1)
        except (ValueError, KeyError, TypeError):
            pass
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    return f"<{len(content)} bytes, sha256 {digest}>" if "\0" in text else text


def answer(line: Line, programs: Path, names: dict[str, str]) -> dict:
    """Results of a line: {"exit", "stdout", "stderr", "files": {NAME: CONTENT}}."""
    with tempfile.TemporaryDirectory(prefix="golden.") as name:
        folder = Path(name).resolve()
        for shown in SHOWN:
            (folder / shown).symlink_to(ROOT / shown)
        names = {str(folder): "<folder>", **names}
        kept = {key: value for key, value in os.environ.items() if key in ("HOME", "LANG", "LD_LIBRARY_PATH")}
        surroundings = {**kept, "LC_ALL": "C.UTF-8", "TZ": "UTC", "SOURCE_DATE_EPOCH": "0",
                        "PATH": f"{programs}:{os.environ.get('PATH', '')}"}
        try:
            done = subprocess.run(["bash", "-c", line.words], cwd=folder, env=surroundings, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            sys.exit(f"golden.py: still running after {SECONDS} s: {line.words}")
        written = {str(path.relative_to(folder)): path for path in folder.rglob("*")
                   if path.is_file() and not path.is_symlink()}
        return {"exit": done.returncode, "stdout": normalised(described(done.stdout), line, names),
                "stderr": normalised(described(done.stderr), line, names),
                "files": {name: normalised(described(path.read_bytes()), line, names)
                          for name, path in sorted(written.items())}}


def take(binary: Path, folder: Path, lines: dict[str, list[Line]]) -> int:
    """Runs the lines and writes their answers to FOLDER/NAME.json; returns how many there are."""
    told = subprocess.run([binary, "--version"], capture_output=True, encoding="utf-8", check=True)
    names = {str(binary): "<specdec>", str(ROOT): "<root>", told.stdout.split()[-1]: "<version>"}
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        sys.exit(f"golden.py: {folder} is not empty: answers of two programs would be mixed")
    with tempfile.TemporaryDirectory(prefix="golden.") as scratch, \
            concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        programs = Path(scratch)
        (programs / "specdec").symlink_to(binary)
        started = {name: [(line, pool.submit(answer, line, programs, names)) for line in of_file]
                   for name, of_file in lines.items()}
        try:
            answers = {name: {line.words: run.result() for line, run in of_file} for name, of_file in started.items()}
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for name, of_lines in answers.items():
        (folder / f"{name}.json").write_text(json.dumps(of_lines, indent=1) + "\n", encoding="utf-8")
    return sum(map(len, lines.values()))


# -------------------------------------------------------------------------------------------------------------- compare


@dataclass
class Difference:
    """A difference at one place of one line's answer. `relative` is the distance of two numbers."""

    line: str
    place: str
    what: str
    shown: str
    relative: float | None = None
    needs_reason: bool = True
    reason: str | None = None


@dataclass
class Wanted:
    """A line of the file of wanted differences."""

    lines: re.Pattern[str]
    places: re.Pattern[str]
    within: float | None
    reason: str
    written: str
    used: bool = field(default=False)

    def explains(self, difference: Difference) -> bool:
        near = self.within is None or (difference.relative is not None and difference.relative <= self.within)
        return bool(near and self.lines.fullmatch(difference.line) and self.places.fullmatch(difference.place))


def wanted_of(text: str) -> list[Wanted]:
    """The lines of a file of wanted differences. Exits where one is not LINES :: PLACES :: REASON."""

    def pattern(words: str) -> re.Pattern[str]:
        return re.compile(".*".join(map(re.escape, words.split("*"))), re.DOTALL)

    wanted = []
    for written in text.splitlines():
        if not written.strip() or written.startswith("#"):
            continue
        parts = [part.strip() for part in written.split(" :: ")]
        if len(parts) != 3 or not all(parts):
            sys.exit(f"golden.py: a wanted difference is LINES :: PLACES :: REASON, but found: {written}")
        place, _, within = parts[1].partition(" within ")
        try:
            bound = float(within) if within else None
        except ValueError:
            sys.exit(f"golden.py: within is followed by a number, but found: {written}")
        wanted.append(Wanted(pattern(parts[0]), pattern(place), bound, parts[2], written))
    return wanted


def number(value) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def relative_difference(old, new) -> float | None:
    """|new - old| / max(|old|, |new|) of two numbers, also as text; None where one is no number."""
    first, second = number(old), number(new)
    if first is None or second is None:
        return None
    return abs(second - first) / max(abs(first), abs(second)) if first != second else 0.0


def parsed(text: str):
    """The JSON document that a text is, or None."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def brief(value) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:97] + "..."


def of_values(old, new, place: str, exact: str, line: str) -> Iterator[Difference]:
    """The differences of two JSON values; `exact` is the place with its indices."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            below, there = f"{place}.{key}".lstrip("."), f"{exact}.{key}".lstrip(".")
            if key not in new:
                yield Difference(line, below, "removed", f"{there} was {brief(old[key])}")
            elif key not in old:
                yield Difference(line, below, "added", f"{there} is {brief(new[key])}", needs_reason=False)
            else:
                yield from of_values(old[key], new[key], below, there, line)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield Difference(line, f"{place}[]", "changed length", f"{exact} has {len(old)} -> {len(new)} elements")
        for index, (first, second) in enumerate(zip(old, new)):
            yield from of_values(first, second, f"{place}[]", f"{exact}[{index}]", line)
    elif type(old) is not type(new):
        yield Difference(line, place, "changed type", f"{exact}: {brief(old)} -> {brief(new)}")
    elif old != new:
        distance = None if isinstance(old, str) else relative_difference(old, new)
        yield Difference(line, place, "changed", f"{exact}: {brief(old)} -> {brief(new)}", distance)


def table_of(text: str, line: str, name: str) -> list[list[str]] | None:
    """The rows of a CSV table: what a line with --format csv printed, and files that are called so."""
    if not name.endswith(".csv") and not (name == "stdout" and "--format csv" in line):
        return None
    rows = list(csv.reader(io.StringIO(text)))
    same = rows and len(set(rows[0])) == len(rows[0]) and all(len(row) == len(rows[0]) for row in rows)
    return rows if same else None


def of_tables(old: list[list[str]], new: list[list[str]], line: str) -> Iterator[Difference]:
    if len(old) != len(new):
        yield Difference(line, "rows", "changed length", f"{len(old) - 1} -> {len(new) - 1} rows")
    for column in [*old[0], *(name for name in new[0] if name not in old[0])]:
        if column not in new[0] or column not in old[0]:
            yield Difference(line, column, "removed" if column in old[0] else "added", f"column {column}")
            continue
        first, second = old[0].index(column), new[0].index(column)
        for row, (before, after) in enumerate(zip(old[1:], new[1:]), start=1):
            if before[first] != after[second]:
                yield Difference(line, column, "changed", f"row {row}: {before[first]!r} -> {after[second]!r}",
                                 relative_difference(before[first], after[second]))
    common = [[name for name in rows[0] if name in both[0]] for rows, both in ((old, new), (new, old))]
    if common[0] != common[1]:
        yield Difference(line, "header", "changed order", f"{','.join(old[0])} -> {','.join(new[0])}")


def of_texts(old: str, new: str, name: str, line: str) -> Iterator[Difference]:
    """The differences of two texts by what they are: JSON, CSV or words."""
    if old == new:
        return
    documents = parsed(old), parsed(new)
    tables = table_of(old, line, name), table_of(new, line, name)
    inner: list[Difference] = []
    if None not in documents:
        inner = list(of_values(*documents, "", "", line))
    elif tables[0] is not None and tables[1] is not None:
        inner = list(of_tables(tables[0], tables[1], line))
    for difference in inner:
        difference.place = f"{name}:{difference.place}"
    yield from inner
    if not inner:
        before, after = (re.sub(r">\s*<", ">\n<", text).splitlines() for text in (old, new))
        diff = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
        hidden = [f"... and {len(diff) - DIFF_LINES} lines more"] if len(diff) > DIFF_LINES else []
        yield Difference(line, name, "changed", "\n".join(diff[:DIFF_LINES] + hidden) or "line ends or spaces differ")


def of_answers(old: dict, new: dict, line: str) -> Iterator[Difference]:
    if old["exit"] != new["exit"]:
        yield Difference(line, "exit", "changed", f"{old['exit']} -> {new['exit']}")
    yield from of_texts(old["stderr"], new["stderr"], "stderr", line)
    yield from of_texts(old["stdout"], new["stdout"], "stdout", line)
    for name in sorted(set(old["files"]) | set(new["files"])):
        if name in old["files"] and name in new["files"]:
            yield from of_texts(old["files"][name], new["files"][name], name, line)
        else:
            yield Difference(line, name, "removed" if name in old["files"] else "added", f"file {name}")


def differences_of(old: Path, new: Path) -> tuple[list[Difference], str]:
    """Differences between two folders of answers, and the extent of the comparison, in words."""
    found: list[Difference] = []
    counts = {"lines": 0, "added": 0}
    names = sorted(path.stem for path in new.glob("*.json"))
    if not names:
        sys.exit(f"golden.py: {new} holds no answers")
    for name in names:
        if not (old / f"{name}.json").exists():
            sys.exit(f"golden.py: {old / name}.json is not there, but {new / name}.json is")
        before, after = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for folder in (old, new))
        for line, answered in before.items():
            if line in after:
                found += of_answers(answered, after[line], line)
                counts["lines"] += 1
            else:
                found.append(Difference(line, "line", "removed", "the new folder lacks this line"))
        counts["added"] += len(set(after) - set(before))
    missing = sorted(path.stem for path in old.glob("*.json") if path.stem not in names)
    compared = f"{counts['lines']} lines compared"
    if counts["added"]:
        compared += f", {counts['added']} in {new} alone"
    return found, compared + (f", not {', '.join(missing)}, which {new} lacks" if missing else "")


RANKS = {"line": 0, "exit": 1, "stderr": 2}


def groups_of(found: list[Difference]) -> list[list[Difference]]:
    """Differences of the same place and kind together; of texts those whose diff is the same."""
    groups: dict[tuple, list[Difference]] = {}
    for difference in found:
        own = difference.shown if "\n" in difference.shown or difference.place in RANKS else ""
        groups.setdefault((difference.place, difference.what, own, difference.reason), []).append(difference)
    return sorted(groups.values(), key=lambda group: (RANKS.get(group[0].place, 3), group[0].place, group[0].what))


def print_group(group: list[Difference]) -> None:
    lines = list(dict.fromkeys(difference.line for difference in group))
    largest = max(group, key=lambda difference: difference.relative or 0.0)
    size = f", by at most {largest.relative:.1e} of itself" if largest.relative is not None else ""
    counted = f"{len(lines)} lines" if len(lines) > 1 else "1 line"
    if len(group) > len(lines):
        counted += f", {len(group)} values"
    print(f"{largest.place}  {largest.what}  ({counted}{size})")
    print(f"    $ {largest.line}")
    for shown in largest.shown.splitlines():
        print(f"      {shown}")


def compare(old: Path, new: Path, wanted: list[Wanted]) -> int:
    """Prints the differences of two folders; returns 1 if one lacks a reason, else 0."""
    found, compared = differences_of(old, new)
    for difference in found:
        by = next((entry for entry in wanted if entry.explains(difference)), None)
        if by:
            by.used, difference.reason = True, by.reason
    without = [difference for difference in found if difference.needs_reason and difference.reason is None]
    added = [difference for difference in found if not difference.needs_reason and difference.reason is None]
    explained = [difference for difference in found if difference.reason is not None]
    for title, part in (("New keys", added), ("Wanted", explained), ("Without a reason", without)):
        if part:
            print(f"== {title}")
        for group in groups_of(part):
            print_group(group)
            if group[0].reason is not None:
                print(f"    wanted: {group[0].reason}")
    for entry in wanted:
        if not entry.used:
            print(f"explains nothing: {entry.written}")
    print(f"{compared}: {len(without)} differences without a reason, {len(explained)} wanted, {len(added)} new keys")
    return 1 if without else 0


# -------------------------------------------------------------------------------------------------------------- options

ENTRY = re.compile(r"  (-[\w-]+(?:,-[\w-]+)*)(?: (\S.*?))?(?:  .*)?$")
WORDS = re.compile(r"[a-z][\w-]*(?:\|[a-z][\w-]*)+")
SECTION = re.compile(r"(\w.*?)(?: [(\[].*)?:$")
DRAWN = ("Drawing", "Output")


@dataclass
class Option:
    """An option of a command as its help lists it, with the words that it takes."""

    section: str
    names: tuple[str, ...]
    choices: tuple[str, ...]


def help_of(binary: Path, command: str) -> str:
    """All options of the command; a command with few of them has no --help-all."""
    for option in ("--help-all", "--help"):
        done = subprocess.run([binary, *command.split(), option], capture_output=True, encoding="utf-8", check=False)
        if done.returncode == 0:
            return done.stdout
    raise RuntimeError(done.stderr)


def commands_of(binary: Path, command: str = "") -> dict[str, str]:
    """Every command, nested ones too, with its --help."""
    text = help_of(binary, command)
    found = {command: text}
    below = text.partition("\nSubcommands:\n")[2]
    for name in re.findall(r"^  ([a-z][\w-]*)  ", below, re.MULTILINE):
        found.update(commands_of(binary, f"{command} {name}".strip()))
    return found


def options_of(text: str) -> list[Option]:
    options: list[Option] = []
    section = ""
    for line in text.partition("\nSubcommands:\n")[0].splitlines():
        titled, entry = SECTION.fullmatch(line), ENTRY.match(line)
        if titled:
            section = titled[1]
        elif entry and section != "Positionals":
            words = WORDS.match(entry[2] or "")
            choices = words[0].split("|") if words else []
            if "csv prints: " in line:
                choices = line.partition("csv prints: ")[2].split(", ")
            options.append(Option(section, tuple(entry[1].split(",")), tuple(choices)))
    return options


def uses_of(lines: list[Line], commands: dict[str, str]) -> dict[str, set[tuple[str, str]]]:
    """By command the options that lines give it, each with the word behind it."""
    used: dict[str, set[tuple[str, str]]] = {command: set() for command in commands}
    for line in lines:
        lexer = shlex.shlex(line.words, posix=True, punctuation_chars=";|&<>()")
        lexer.whitespace_split, lexer.commenters = True, ""
        words = [*lexer, ";"]
        for begin in (index + 1 for index, word in enumerate(words) if word == "specdec"):
            end = next(index for index in range(begin, len(words)) if set(words[index]) <= set(";|&<>()"))
            command = ""
            for index in range(begin, end):
                longer = f"{command} {words[index]}".strip()
                if longer in commands:
                    command = longer
                elif words[index].startswith("-"):
                    name, _, value = words[index].partition("=")
                    used[command].add((name, value or words[index + 1]))
    return used


def unused_of(binary: Path, lines: list[Line]) -> list[str]:
    """Options that --help shows and no line uses, as "COMMAND: OPTION [WORD]"."""
    commands = commands_of(binary)
    used = uses_of(lines, commands)
    drawn = {use for command, uses in used.items() if command.startswith("plot ") for use in uses}
    unused: list[str] = []
    for command, text in commands.items():
        for option in options_of(text):
            if option.names[-1] in ("--help", "--help-all", "--explain", "--config", "--print-config"):
                continue
            here = set(used[command])
            if command == "report" or command.startswith("plot "):
                here |= drawn if option.section in DRAWN else used["plan"] | used["capacity"] | used["compare"]
            values = {value for name, value in here if name in option.names}
            if not values:
                unused.append(f"{command}: {option.names[-1]}")
            elif option.section not in DRAWN or "--table" in option.names:
                unused += [f"{command}: {option.names[-1]} {word}" for word in option.choices if word not in values]
    return unused


# ----------------------------------------------------------------------------------------------------------------- main


def main(words: list[str]) -> int:
    usage = "\n".join((__doc__ or "").splitlines()[2:5])
    if len(words) >= 3 and words[0] == "take":
        lines = all_lines()
        unknown = [name for name in words[3:] if name not in lines]
        if unknown:
            sys.exit(f"golden.py: {COMMANDS / unknown[0]}.txt is not there; there are {', '.join(lines)}")
        chosen = {name: of_file for name, of_file in lines.items() if name in (words[3:] or lines)}
        print(f"{take(Path(words[1]).resolve(), Path(words[2]), chosen)} lines taken")
        return 0
    if words[:1] == ["compare"] and (len(words) == 3 or len(words) == 5 and words[3] == "--wanted"):
        wanted = wanted_of(Path(words[4]).read_text(encoding="utf-8")) if len(words) == 5 else []
        return compare(Path(words[1]), Path(words[2]), wanted)
    if words[:1] == ["options"] and len(words) == 2:
        unused = unused_of(Path(words[1]).resolve(), [line for of_file in all_lines().values() for line in of_file])
        print("\n".join(unused) or "every option is used")
        return 1 if unused else 0
    sys.exit(usage)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
