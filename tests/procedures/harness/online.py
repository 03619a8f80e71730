"""Alters whose elements go through states, and what must be true when they are over."""

from typing import Any

from keys.model.tables import Column, Index, TableInfo
from keys.store.kv import Compare
from metasrv_base.elements.states import ElementState
from procedures.kinds.alter.alter_operations import (
    AddColumnOperation,
    AddIndex,
    DropColumnOperation,
    DropIndex,
    DropNotNull,
    RenameColumnOperation,
    SetDefaultOperation,
    SetOptionsOperation,
    ValidateIndex,
)
from procedures.kinds.alter.alter_table import AlterTable
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.disk import Folder
from tests.procedures.harness.ends import TABLE, End, effects, is_true, serving
from tests.procedures.harness.tables import NODES, put_schema, put_table, reserve_ids, table_info

NARROW = 2
"""Columns of the table of most scenarios."""
ADDS = AlterTable(
    catalog="main",
    schema_name="public",
    name="t",
    table_id=TABLE,
    operations=(AddColumnOperation(name="extra", type="int64", after="id"),),
)
ALTERS = AlterTable(
    catalog="main",
    schema_name="public",
    name="t",
    table_id=TABLE,
    operations=(
        AddColumnOperation(name="seats", type="int32", nullable=False, default=100, after="id"),
        DropColumnOperation(name="size"),
        DropNotNull(name="code"),
        RenameColumnOperation(name="note", new_name="text"),
        SetDefaultOperation(name="text", default="none"),
        SetOptionsOperation(options={"a": "1"}),
    ),
)


GRACE_MS = 500
INDEXES = ADDS.model_copy(
    update={"operations": (AddIndex(name="by_note", columns=("note", "id"), unique=True),)}
)
REPEATED = ADDS.model_copy(
    update={"operations": (AddIndex(name="by_note", columns=("note",), unique=True),)}
)
LENIENT = ADDS.model_copy(
    update={
        "operations": (AddIndex(name="by_note", columns=("note",), unique=True, not_valid=True),)
    }
)
VALIDATES = ADDS.model_copy(update={"operations": (ValidateIndex(name="by_note"),)})
UNINDEXES = ADDS.model_copy(
    update={"operations": (DropIndex(name="by_note"),), "grace_ms": GRACE_MS}
)
INDEX = Index(id=1, name="by_note", columns=(2, 1), unique=True)


def indexed_info() -> TableInfo:
    info = table_info(TABLE, "t", 1)
    return info.model_copy(update={"indexes": (INDEX,), "next_index_id": 2})


def wide_info() -> TableInfo:
    """Table t with a column that has neither null nor default, and one to be relaxed."""
    info = table_info(TABLE, "t", 1)
    more = (
        Column(id=3, name="size", type="decimal(6,2)", nullable=False),
        Column(id=4, name="code", type="string", nullable=False),
    )
    return info.model_copy(update={"columns": (*info.columns, *more), "next_column_id": 5})


# ---- what is there before


async def with_info(cluster: Cluster, fence: Compare, info: TableInfo) -> None:
    """Makes a table of one region, so that a life is short; other tables have more."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    await put_table(cluster, fence, info, ("dn-1",))


async def with_wide_table(cluster: Cluster, fence: Compare) -> None:
    await with_info(cluster, fence, wide_info())


async def with_empty_table(cluster: Cluster, fence: Compare) -> None:
    """Its region has never had a row."""
    await with_info(cluster, fence, table_info(TABLE, "t", 1))
    for folder in cluster.plane.storage.folders.values():
        folder.files.clear()


async def with_rows(cluster: Cluster, fence: Compare) -> None:
    await with_info(cluster, fence, table_info(TABLE, "t", 1))


async def with_repeated_rows(cluster: Cluster, fence: Compare) -> None:
    """Two rows of its region have one note."""
    await with_info(cluster, fence, table_info(TABLE, "t", 1))
    _repeat_rows(cluster)


async def with_index_not_valid(cluster: Cluster, fence: Compare) -> None:
    """Write-only: its rows of before have no entries."""
    left = INDEX.model_copy(update={"state": ElementState.WRITE_ONLY})
    info = indexed_info().model_copy(update={"indexes": (left,)})
    await with_info(cluster, fence, info)


async def with_repeated_rows_not_valid(cluster: Cluster, fence: Compare) -> None:
    await with_index_not_valid(cluster, fence)
    _repeat_rows(cluster)


def _repeat_rows(cluster: Cluster) -> None:
    for folder in cluster.plane.storage.folders.values():
        folder.files.clear()
        folder.files["file"] = frozenset({"1=same", "2=same", "3=other"})


async def with_index(cluster: Cluster, fence: Compare) -> None:
    await with_info(cluster, fence, indexed_info())


# ---- how it may end


def column_added(end: End) -> list[str]:
    """Optional: delete-only, then public."""
    info = end.tables()["public.t"]
    names = [column["name"] for column in info["columns"]]
    return [
        *effects(end, *["table.altered"] * 4),
        *is_true(names == ["id", "extra", "note"], f"columns {names}"),
        *is_true((info["schema_version"], info["schema_floor"]) == (3, 2), f"{info}"),
        *told(end, 3, 2),
        *serving(end, TABLE, epoch=1),
    ]


def all_altered(end: End) -> list[str]:
    """Two transitions to the last undoable state, one over it, one for dropped elements: each of
    the five versions after a floor."""
    info = end.tables()["public.t"]
    columns = [(c["id"], c["name"], c["nullable"], c["default"]) for c in info["columns"]]
    wanted = [
        (1, "id", False, None),
        (5, "seats", False, 100),
        (2, "text", True, "none"),
        (4, "code", True, None),
    ]
    return [
        *effects(end, *["table.altered"] * 9),
        *is_true(columns == wanted, f"columns {columns}"),
        *is_true(info["options"] == {"a": "1"}, f"options {info['options']}"),
        *is_true({c["state"] for c in info["columns"]} == {"public"}, f"{info}"),
        *is_true(info["constraints"] == [], f"{info}"),
        *is_true((info["schema_version"], info["schema_floor"]) == (5, 5), f"{info}"),
        *told(end, 5, 5),
        *serving(end, TABLE, epoch=1),
    ]


def index_made(end: End) -> list[str]:
    info = end.tables()["public.t"]
    return [
        *effects(end, *["table.altered"] * 6),
        *is_true(info["indexes"] == [INDEX.model_dump(mode="json")], f"{info}"),
        *is_true((info["schema_version"], info["schema_floor"]) == (4, 3), f"{info}"),
        *told(end, 4, 3),
        *serving(end, TABLE, epoch=1, rows=False),
    ]


def index_filled(end: End) -> list[str]:
    """Exactly one entry for each row, and nothing is left of how they came."""
    info = end.tables()["public.t"]
    return [
        *effects(end, *["table.altered"] * 6),
        *is_true(info["indexes"] == [INDEX.model_dump(mode="json")], f"{info}"),
        *is_true((info["schema_version"], info["schema_floor"]) == (4, 3), f"{info}"),
        *told(end, 4, 3),
        *serving(end, TABLE, epoch=1),
        *has_entries(end),
    ]


def has_entries(end: End) -> list[str]:
    """Checks that the index has its entries in every region, and that no mark is open."""
    wrong = []
    for folder in _folders(end):
        entries = sorted(entry.split(" ")[1] for entry in folder.entries.get(INDEX.id, ()))
        rows = sorted(row.partition("=")[0] for row in folder.rows)
        wrong += is_true(entries == rows, f"entries of {entries}, rows {rows}")
        wrong += is_true(not folder.marks, f"marks {folder.marks}")
    return wrong


def index_left(end: End) -> list[str]:
    """It stays write-only, and the history says which rows are in the way."""
    info = end.tables()["public.t"]
    states = [index["state"] for index in info["indexes"]]
    (ended,) = end.agreement.family("__procedure_history").values()
    found = (ended["result"] or {}).get("offenders", [])
    marks = [folder.marks for folder in _folders(end) if folder.marks]
    return [
        *is_true(states == ["write-only"], f"{info}"),
        *is_true([one["rows"] for one in found] == [[[1], [2]]], f"{found}"),
        *is_true(not marks, f"marks {marks}"),
    ]


def index_validated(end: End) -> list[str]:
    info = end.tables()["public.t"]
    return [
        *is_true([one["state"] for one in info["indexes"]] == ["public"], f"{info}"),
        *serving(end, TABLE, epoch=1),
        *has_entries(end),
    ]


def still_not_valid(end: End) -> list[str]:
    """As it was left, and no mark is open."""
    info = end.tables()["public.t"]
    marks = [folder.marks for folder in _folders(end) if folder.marks]
    return [
        *is_true([one["state"] for one in info["indexes"]] == ["write-only"], f"{info}"),
        *is_true(not marks, f"marks {marks}"),
    ]


def index_gone(end: End) -> list[str]:
    """From the regions too, and for good."""
    info = end.tables()["public.t"]
    dead = {frozenset(folder.dead_indexes) for folder in _folders(end)}
    return [
        *effects(end, *["table.altered"] * 6),
        *is_true((info["indexes"], info["next_index_id"]) == ([], 2), f"{info}"),
        *is_true(dead == {frozenset({1})}, f"dead {dead}"),
        *told(end, 4, 4),
        *serving(end, TABLE, epoch=1),
    ]


def never_indexed(end: End) -> list[str]:
    """Checks that an index of which regions may have heard is dead."""
    has_heard = {folder.schema_version > 1 for folder in _folders(end)}
    dead = {frozenset(folder.dead_indexes) for folder in _folders(end)}
    forgotten = True not in has_heard or dead == {frozenset({1})}
    left = [f"{one.marks} {one.entries}" for one in _folders(end) if one.marks or one.entries]
    was = table_info(TABLE, "t", 1)
    return [*is_as(end, was, rows=False), *is_true(forgotten, f"dead {dead}"), *left]


def still_indexed(end: End) -> list[str]:
    return is_as(end, indexed_info())


def never_altered(end: End, rows: bool = True) -> list[str]:
    """As if it had never been asked for, but for ids and versions."""
    info = end.tables()["public.t"]
    is_wide = len(info["columns"]) > NARROW
    narrow = table_info(TABLE, "t", info["partition"]["count"])
    return is_as(end, wide_info() if is_wide else narrow, rows)


def is_as(end: End, was: TableInfo, rows: bool = True) -> list[str]:
    """Checks that table t is *was*, but for ids and versions."""
    info = end.tables()["public.t"]
    before = was.model_dump(mode="json", by_alias=True)
    counted = {"version", "schema_version", "schema_floor", "next_column_id"}
    counted |= {"next_index_id", "next_constraint_id"}
    differs = {
        name: (before[name], value)
        for name, value in info.items()
        if value != before[name] and name not in counted
    }
    return [
        *is_true(not differs, f"differs: {differs}"),
        *is_true(info["schema_floor"] <= info["schema_version"], f"{info}"),
        *serving(end, TABLE, epoch=1, rows=rows),
    ]


def told(end: End, version: int, floor: int) -> list[str]:
    """Checks the schema version and the floor in the log of every region."""
    found = {region["region_id"]: _schema(end, region) for region in end.regions(TABLE)}
    return is_true(set(found.values()) == {(version, floor)}, f"told {found}")


def _folders(end: End) -> list[Folder]:
    folders = end.cluster.plane.storage.folders
    return [folders[region["root"]] for region in end.regions(TABLE)]


def _schema(end: End, region: dict[str, Any]) -> tuple[int, int]:
    folder = end.cluster.plane.storage.folders[region["root"]]
    return folder.schema_version, folder.schema_floor
