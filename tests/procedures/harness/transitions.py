"""Legal moves of a table's elements from one stored value to the next, judged from raw JSON.

Written from the tables of docs/elements.md, without any model of the product.
"""

from collections.abc import Iterator
from typing import Any

NEIGHBOURS = (
    {"absent", "delete-only"},
    {"delete-only", "write-only"},
    {"write-only", "public"},
)
CONSTRAINT_NEIGHBOURS = ({"absent", "write-only"}, {"write-only", "public"})


def faults(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Yields the faults of *new* as the value that follows *old*."""
    before, after = old["schema_version"], new["schema_version"]
    steps = dict(_steps(old, new))
    if after not in (before, before + 1) or (steps and after == before):
        yield f"schema version {after} after {before}, steps {steps}"
    if after > before and old["schema_floor"] != before:
        yield f"schema version {after} is published over a floor of {old['schema_floor']}"
    if not old["schema_floor"] <= new["schema_floor"] <= after:
        yield f"floor {new['schema_floor']} after {old['schema_floor']}, version {after}"
    for what, (left, right) in steps.items():
        if not _are_neighbours(what, {left, right}, old, new):
            yield f"{what} goes from {left} to {right}"


def _steps(
    old: dict[str, Any], new: dict[str, Any]
) -> Iterator[tuple[tuple[str, int], tuple[str, str]]]:
    for kind in ("columns", "indexes", "constraints"):
        left = {one["id"]: one["state"] for one in old[kind]}
        right = {one["id"]: one["state"] for one in new[kind]}
        for number in sorted(left.keys() | right.keys()):
            pair = left.get(number, "absent"), right.get(number, "absent")
            if pair[0] != pair[1]:
                yield (kind, number), pair


def _are_neighbours(
    what: tuple[str, int], pair: set[str], old: dict[str, Any], new: dict[str, Any]
) -> bool:
    kind, number = what
    if kind == "constraints":
        return pair in CONSTRAINT_NEIGHBOURS
    if pair in NEIGHBOURS:
        return True
    known = [one for one in (*new[kind], *old[kind]) if one["id"] == number]
    if any(one.get("replaces") or one.get("replaced_by") for one in known):
        return pair in CONSTRAINT_NEIGHBOURS
    found = known[0]
    optional = found.get("nullable") and found.get("origin_default") is None
    return kind == "columns" and bool(optional) and pair == {"delete-only", "public"}
