"""Alters that give a column another type, over rows that fit it or do not; and how they may end."""

from typing import Any

from keys.store.kv import Compare
from procedures.kinds.alter.type_operations import AlterTypeOperation
from tests.fakes.cluster import Cluster
from tests.procedures.harness.constraints import no_marks
from tests.procedures.harness.ends import TABLE, End, effects, is_true, serving
from tests.procedures.harness.online import ADDS, never_altered, told, with_rows

RETYPES = ADDS.model_copy(update={"operations": (AlterTypeOperation(name="note", type="int64"),)})
MISFITS = ("b", "c")
"""Keys of rows whose note is no number."""


async def with_numbers(cluster: Cluster, fence: Compare) -> None:
    await with_rows(cluster, fence)
    _fill(cluster, {"a=7", "b=-8"})


async def with_misfits(cluster: Cluster, fence: Compare) -> None:
    await with_rows(cluster, fence)
    _fill(cluster, {"a=7", *(f"{key}=here" for key in MISFITS)})


def _fill(cluster: Cluster, rows: set[str]) -> None:
    for folder in cluster.plane.storage.folders.values():
        folder.files.clear()
        folder.files["file"] = frozenset(rows)


def retyped(end: End) -> list[str]:
    """Write-only, public, and the old column gone: a column like any other, which says what rows
    that lack it read as."""
    info = end.tables()["public.t"]
    (note,) = [column for column in info["columns"] if column["name"] == "note"]
    shown = {name: note[name] for name in ("id", "type", "state", "replaces", "replaced_by")}
    wanted = {"id": 3, "type": "int64", "state": "public", "replaces": None, "replaced_by": None}
    return [
        *effects(end, *["table.altered"] * 7),
        *is_true(shown == wanted, f"column {shown}"),
        *is_true(note["origin_columns"] == [{"id": 2, "type": "string"}], f"column {note}"),
        *is_true([column["id"] for column in info["columns"]] == [1, 3], f"{info['columns']}"),
        *is_true((info["schema_version"], info["schema_floor"]) == (4, 4), f"{info}"),
        *told(end, 4, 4),
        *serving(end, TABLE, epoch=1, rows=False),
        *no_marks(end),
    ]


def not_retyped(end: End) -> list[str]:
    """As if it had never been asked for, and the history says which rows are in the way, unless
    it was undone for something else."""
    (ended,) = end.agreement.family("__procedure_history").values()
    error: dict[str, Any] = ended["last"]["error"] or {}
    found = error.get("facts", {}).get("violations", [])
    wanted = [
        {
            "constraint": "type int64 of column note",
            "key": {"id": ord(key)},
            "values": {"note": "here"},
        }
        for key in MISFITS
    ]
    said = error.get("code") != "check-violation" or found == wanted
    return [
        *never_altered(end, rows=False),
        *is_true(said, f"violations {found}"),
        *no_marks(end),
    ]
