"""How often each file of the product binds a name that says how a value came, not what it is.

`python -m tests.house.vague_names` lowers the counts in `vague_names.json`; it never raises one.
"""

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from scripts.documents.references import PACKAGES

ROOT = Path(__file__).parents[2]
ALLOWED = Path(__file__).with_name("vague_names.json")
VAGUE = frozenset({"found", "one", "at", "asked", "known", "wanted", "seen", "place"})


def bindings(source: str) -> int:
    """Variables, parameters and fields of *source* that have one of the vague names."""
    return sum(name in VAGUE for node in ast.walk(ast.parse(source)) for name in _bound(node))


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg


def counted() -> Mapping[str, int]:
    """File -> bindings, of files that have any."""
    files = [file for top in PACKAGES for file in sorted((ROOT / top).rglob("*.py"))]
    counts = {file.relative_to(ROOT).as_posix(): bindings(file.read_text()) for file in files}
    return {file: count for file, count in sorted(counts.items()) if count}


def allowed() -> Mapping[str, int]:
    counts: dict[str, int] = json.loads(ALLOWED.read_text())
    return counts


def lowered(allowed: Mapping[str, int], counts: Mapping[str, int]) -> Mapping[str, int]:
    """What is allowed from now on; a file without bindings is no longer listed."""
    lower = {file: min(limit, counts.get(file, 0)) for file, limit in allowed.items()}
    return {file: limit for file, limit in lower.items() if limit}


if __name__ == "__main__":
    ALLOWED.write_text(json.dumps(lowered(allowed(), counted()), indent=1) + "\n")
