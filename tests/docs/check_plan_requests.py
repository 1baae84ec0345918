#!/usr/bin/env python3
"""Holds docs/schema/plan.request.json against the examples that the unit tests of planner/plan_request.hpp read.

usage: check_plan_requests.py EXAMPLES SCHEMA

The schema accepts what the reader accepts, and refuses what that refuses, but for what is wrong between two values.
"""
import json
import sys
from pathlib import Path

from jsonschema import Draft7Validator


def main():
    examples = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    schema = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    Draft7Validator.check_schema(schema)
    validator = Draft7Validator(schema)
    failures = []
    for request in examples["accepted"]:
        for error in validator.iter_errors(request):
            failures.append(f"{json.dumps(request)}: {'/'.join(map(str, error.path))}: {error.message}")
    for example in examples["refused"]:
        if example.get("told_by_schema", True) and validator.is_valid(example["request"]):
            failures.append(f"the schema accepts {json.dumps(example['request'])}")
    print("\n".join(failures) or f"{len(examples['accepted']) + len(examples['refused'])} requests checked")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
