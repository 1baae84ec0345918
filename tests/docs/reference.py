#!/usr/bin/env python3
"""Holds docs/reference/cli.md and json.md against what the program and docs/schema say, or writes them.

usage: reference.py [--write] SPECDEC
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
SHARED = ("schema", "version", "decision", "inputs", "assumptions", "warnings")
INTRODUCTION = """# JSON and CSV

Written by `tests/docs/reference.py` from `docs/schema`, which describes every answer exactly. `--format json` prints one
object. `--format csv` prints one table with one header line; `--table NAME` chooses it. You find there:

| key | content |
|---|---|
| `schema` | `specdec.COMMAND/2` |
| `version` | of the program |
| `decision` | what to do, and how sure that is: [below](#decision) |
| `inputs` | every option with its effective value; files with size, time and SHA-256 |
| `assumptions` | `[{"name", "value", "source"}]`, source being `user`, `file`, `preset` or `default` |
| `warnings` | `[{"code", "message"}]`; codes are stable |

A key never changes its type. A value that cannot be computed is null, with a warning that says why; an infinite value is
null with a sibling `KEY_note`. An estimate is `{"value", "ci95": [low, high], "method"}`; a bracket without probabilities is
`{"value": null, "bounds", "ci95"}`. Doubles read back as the same double. In CSV the members of an object become columns
`outer_inner`, an interval two columns `_low` and `_high`, null an empty cell; warnings go to standard error.

Keys of `/1`, those of plans first, and their place in `/2`:

| /1 | /2 |
|---|---|
| `recommended.gamma`, `worth_it` | `decision.gamma`, above 0 |
| `optimal.gamma`, `.speedup`, `.gamma_real` | `closed_form.best_gamma`, `.best_speedup`, `.gamma_real` |
| `optimal.expected_tokens`, `.operations_factor`, `.memory_access_factor`; `rows[]` | `points[0].rows[]` |
| `alpha`, `rejection`, `break_even_alpha`, `oracle_speedup`, `finite` | `closed_form` |
| `c`, `near_optimal_gammas`, `deployed` | `points[0]` |
| `c_hat` | `inputs.c_hat` |
| `interval` | `points[0].rows[].speedup.bounds`; the gamma is `decision.gamma` |
| `limit` | `closed_form.best_speedup`, with `best_gamma` null |
| `points[].optimal.gamma`, `.speedup_estimate` | `points[].gamma`, `.speedup` |
| `points[].rows[].speedup`, `_ci95`, `_bounds`; `tokens_per_step`, `_interval`, `_bounds` | `points[].rows[].speedup`, `tokens_per_step`: estimates |
| verdicts `speculate`, `do not speculate`, `cannot tell` | `sure` and `likely`; `no` and `unlikely`; `open`, with `share` |
| `points[].dominant_source`, `interval_share` | `points[].uncertainty` |
| `schedule[].batch_low`, `.batch_high`, `.verdict` | `schedule[].from`, `.to`, `.share` |
| `drafts[].points[].speedup_estimate` | `drafts[].points[].speedup` |
| `KEY`, `KEY_ci95`, `KEY_bounds` of analyses, capacities, priors and held-out runs | `KEY.value`, `.ci95`, `.bounds` |
| `difference`, `ci95`, `p_value` of a diff | `difference.value`, `.ci95`, `.p_value`; of `tokens_per_step` without `difference` |
| `recommendation` of a report | `decision.text` |
| `expected_tokens` of trees and of the paper's figure 2 | `tokens_per_step` |
| `passed_over_gamma`, `unsure_gamma`, `worst_regret`, `gamma_bounds`, `at_limit`, `break_even_c`, `verdict_at_design_effect_3`, `crossover_interval`, `relative`, `bench.next_run.candidates`, `next_measurement.requests`, `lacks_sampling_error` | none |
"""


def resolved(node: dict, schema: dict) -> dict:
    """The node behind its reference, with the description beside that."""
    if "$ref" in node:
        return {**schema["definitions"][node["$ref"].rpartition("/")[2]], **node}
    return node


def choices(node: dict, schema: dict) -> list[dict]:
    """The nodes of which any may stand there."""
    node = resolved(node, schema)
    found = node.get("anyOf") or node.get("oneOf")
    return [one for part in found for one in choices(part, schema)] if found else [node]


def type_of(node: dict, schema: dict) -> str:
    words = []
    for one in choices(node, schema):
        if "enum" in one:
            names = [json.dumps(value).strip('"') for value in one["enum"]]
        elif "const" in one:
            names = [json.dumps(one["const"]).strip('"')]
        else:
            kind = one.get("type", "any")
            names = list(kind) if isinstance(kind, list) else [kind]
            if "array" in names and isinstance(one.get("items"), dict):
                names[names.index("array")] = f"list of {type_of(one['items'], schema).replace(', ', ' or ')}"
        words += [name for name in names if name not in words]
    return ", ".join(words)


def rows_of(node: dict, schema: dict, path: str, depth: int = 0) -> Iterator[str]:
    for one in choices(node, schema):
        for key, member in one.get("properties", {}).items():
            if depth == 0 and key in SHARED and "description" not in member:
                continue
            text = resolved(member, schema).get("description", "").replace("|", "\\|")
            inner = [part for part in choices(member, schema) if part.get("properties")]
            is_figure = bool(inner) and "ci95" in inner[0]["properties"]
            members = "{" + ", ".join(inner[0]["properties"]) + "}" if is_figure else ""
            kind = members or type_of(member, schema).replace("|", "\\|")
            yield f"| `{path}{key}` | {kind} | {text} |"
            lists = [part["items"] for part in choices(member, schema) if isinstance(part.get("items"), dict)]
            if depth < 3 and not {"value", "ci95"} <= set(inner[0]["properties"] if inner else ()):
                for part in inner[:1]:
                    yield from rows_of(part, schema, f"{path}{key}.", depth + 1)
                for part in lists[:1]:
                    yield from rows_of(part, schema, f"{path}{key}[].", depth + 1)


def json_reference() -> str:
    text = INTRODUCTION
    for file in sorted((DOCS / "schema").glob("*.json")):
        schema = json.loads(file.read_text(encoding="utf-8"))
        about = f"[{file.name}](../schema/{file.name}). {schema.get('description', '')}".rstrip()
        text += f"\n## {file.stem.replace('.', ' ')}\n\n{about}"
        rows = dict.fromkeys(rows_of(schema, schema, ""))
        text += "\n\n| key | type | content |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    return text


def help_of(specdec: str, words: list[str]) -> str:
    """All options of a command; one with few options has no --help-all."""
    for option in ("--help-all", "--help"):
        done = subprocess.run([specdec, *words, option], capture_output=True, encoding="utf-8", check=False)
        if done.returncode == 0:
            return re.sub(r"(--threads N)=\d+", r"\1", done.stdout)  # that of the machine
    raise RuntimeError(done.stderr)


def command_reference(specdec: str, words: list[str]) -> str:
    """The help of a command and of all below it."""
    text = help_of(specdec, words)
    below = re.findall(r"^  ([a-z][\w-]*)  ", text.partition("\nSubcommands:\n")[2], re.MULTILINE)
    page = f"\n## {' '.join(['specdec', *words])}\n\n```text not run: a description\n{text.strip()}\n```\n"
    return page + "".join(command_reference(specdec, [*words, name]) for name in below)


def main(words: list[str]) -> int:
    commands = "# Commands and options\n\nWhat `specdec COMMAND --help-all` prints. After `=`: the value without the option.\n"
    wrong = 0
    for name, text in (("cli.md", commands + command_reference(words[-1], [])), ("json.md", json_reference())):
        page = DOCS / "reference" / name
        if "--write" in words:
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, encoding="utf-8")
        elif not page.exists() or page.read_text(encoding="utf-8") != text:
            print(f"docs/reference/{name} is not as the program says; tests/docs/reference.py --write SPECDEC writes it")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
