"""Alters that say what rows must satisfy, over rows that do or do not; and how they may end."""

from typing import Any

from keys.store.kv import Compare
from procedures.kinds.alter.constraint_operations import AddCheck, SetNotNull
from tests.fakes.cluster import Cluster
from tests.procedures.harness.ends import TABLE, End, effects, is_true, serving
from tests.procedures.harness.online import ADDS, never_altered, told, with_rows

CHECK = AddCheck(name="positive", expression="id > 0 or note = 'x'")
CONSTRAINS = ADDS.model_copy(update={"operations": (SetNotNull(name="note"), CHECK)})
NULLS = ("b", "c")
"""Keys of rows that have nothing but a key."""


async def with_nulls(cluster: Cluster, fence: Compare) -> None:
    await with_rows(cluster, fence)
    for folder in cluster.plane.storage.folders.values():
        folder.files.clear()
        folder.files["file"] = frozenset({"a=here", *(f"{key}=" for key in NULLS)})


def constrained(end: End) -> list[str]:
    """Write-only, then public, and the column says itself that it is never null."""
    info = end.tables()["public.t"]
    (check,) = info["constraints"]
    nullable = [column["nullable"] for column in info["columns"]]
    return [
        *effects(end, *["table.altered"] * 4),
        *is_true(nullable == [False, False], f"columns {info['columns']}"),
        *is_true((check["state"], check["holds"]) == ("public", True), f"{check}"),
        *is_true(check["expression"] == "c1 > 0 or c2 = 'x'", f"{check}"),
        *is_true((info["schema_version"], info["schema_floor"]) == (3, 2), f"{info}"),
        *told(end, 3, 2),
        *serving(end, TABLE, epoch=1),
        *no_marks(end),
    ]


def not_constrained(end: End) -> list[str]:
    """As if it had never been asked for, and the history says which rows are in the way, unless
    it was undone for something else."""
    (ended,) = end.agreement.family("__procedure_history").values()
    error: dict[str, Any] = ended["last"]["error"] or {}
    found = error.get("facts", {}).get("violations", [])
    keys = [one["key"] for one in found]
    wanted = [{"id": ord(key)} for key in NULLS]
    said = error.get("code") != "check-violation" or keys == wanted
    return [
        *never_altered(end, rows=False),
        *is_true(said, f"violations {found}"),
        *no_marks(end),
    ]


def no_marks(end: End) -> list[str]:
    folders = end.cluster.plane.storage.folders
    marks = [folders[region["root"]].marks for region in end.regions(TABLE)]
    return is_true(not any(marks), f"marks {marks}")
