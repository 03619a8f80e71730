"""Remains of a backfill in the catalog and on the nodes."""

from tests.procedures.harness.ends import End, is_true
from tests.procedures.harness.online import (
    has_entries,
)


def is_public(end: End) -> list[str]:
    (index,) = end.tables()["public.t"]["indexes"]
    return [*is_true(index["state"] == "public", str(index)), *has_entries(end)]


def never_indexed_of_three(end: End) -> list[str]:
    """Checks the table of three regions, which `never_indexed` does not know."""
    info = end.tables()["public.t"]
    folders = end.cluster.plane.storage.folders
    left = [
        f"{one.marks} {one.entries}"
        for region in end.regions(info["table_id"])
        if (one := folders[region["root"]]).marks or one.entries or one.dead_indexes != {1}
    ]
    return [*is_true(info["indexes"] == [], str(info)), *left]
