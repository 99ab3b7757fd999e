#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second opinion: every file of configs, and the scenarios and examples beside it, against its JSON Schema, by python3-jsonschema.

usage: validate_schema.py CONFIGS
Prints one line per problem, "file: /pointer: message". Exit code 0: none, 1: some, 2: called wrongly.
"""

import json
import pathlib
import sys

import jsonschema

FOLDERS = {"gpus": "gpu", "nics": "nic", "switches": "switch", "links": "link", "servers": "server", "fabrics": "fabric",
           "../scenarios": "scenario", "../docs/examples": "sweep", "../tests/validation": "validation"}


def problems_of(validator, path):
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        yield f"{path}: {error}"
        return
    for error in sorted(validator.iter_errors(document), key=lambda e: [str(step) for step in e.absolute_path]):
        worst = jsonschema.exceptions.best_match([error])
        pointer = "".join(f"/{step}" for step in worst.absolute_path)
        yield f"{path}: {pointer}: {worst.message[:300]}"


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    configs = pathlib.Path(arguments[0])
    files, problems = 0, []
    for folder, kind in FOLDERS.items():
        schema = json.loads((configs / "schema" / f"{kind}.schema.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        for path in sorted((configs / folder).rglob("*.json")):
            files += 1
            problems.extend(problems_of(validator, path))
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(problems)} problems")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
