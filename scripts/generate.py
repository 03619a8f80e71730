"""Files that are made from code and checked in: write them, or say which are out of date.

A generator is a function without arguments that returns {path in this checkout: text}.
"""

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Generators, as "module:function".
GENERATORS: tuple[str, ...] = (
    "metasrv_base.elements.page:pages",
    "metasrv_base.wire.problem.problems:pages",
    "keys.model.keyspace_page:pages",
    "procedures.kinds.diagrams:pages",
    "procedures.engine.control_page:pages",
    "dataplane.datanode.http.documents:documents",
    "dataplane.frontend.http.app:documents",
    "metasrv.api.openapi:documents",
    "metasrv.service.views.views_page:pages",
    "metasrv.check.invariants_page:pages",
    "scripts.documents.conformance:pages",
    "scripts.documents.planted:pages",
    "scripts.documents.rooms:pages",
    "scripts.sync_client:files",
)


def main(args: Sequence[str]) -> int:
    if list(args) not in ([], ["--check"]):
        print("usage: generate.py [--check]")
        return 2
    stale = {path: text for path, text in wanted().items() if current(path) != text}
    if args:
        for path in sorted(stale):
            print(f"{path} is out of date: run `make generate`")
        return 1 if stale else 0
    for path, text in sorted(stale.items()):
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text)
        print(f"wrote {path}")
    return 0


def wanted() -> Mapping[str, str]:
    files: dict[str, str] = {}
    for name in GENERATORS:
        module, function = name.split(":")
        made = getattr(importlib.import_module(module), function)()
        assert not files.keys() & made.keys(), f"{name} makes a file that another one makes"
        files |= made
    return files


def current(path: str) -> str | None:
    file = ROOT / path
    return file.read_text() if file.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
