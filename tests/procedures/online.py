"""Alters whose elements go through states, and what must be true when they are over."""

from typing import Any

from keys.tables import Column, TableInfo
from procedures.kinds.alter_operations import (
    AddColumn,
    DropColumn,
    DropNotNull,
    RenameColumn,
    SetDefault,
    SetOptions,
)
from procedures.kinds.alter_table import AlterTable
from tests.procedures.ends import TABLE, End, effects, is_true, serving
from tests.procedures.tables import table_info

NARROW = 2
"""Columns of the table of most scenarios."""
ADDS = AlterTable(
    catalog="main",
    schema_name="public",
    name="t",
    table_id=TABLE,
    operations=(AddColumn(name="extra", type="int64", after="id"),),
)
ALTERS = AlterTable(
    catalog="main",
    schema_name="public",
    name="t",
    table_id=TABLE,
    operations=(
        AddColumn(name="seats", type="int32", nullable=False, default=100, after="id"),
        DropColumn(name="size"),
        DropNotNull(name="code"),
        RenameColumn(name="note", new_name="text"),
        SetDefault(name="text", default="none"),
        SetOptions(options={"a": "1"}),
    ),
)


def wide_info() -> TableInfo:
    """Table t with a column that has neither null nor default, and one to be relaxed."""
    info = table_info(TABLE, "t", 3)
    more = (
        Column(id=3, name="size", type="decimal(6,2)", nullable=False),
        Column(id=4, name="code", type="string", nullable=False),
    )
    return info.model_copy(update={"columns": (*info.columns, *more), "next_column_id": 5})


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
    """Two transitions to the brink, one over it, one more for what is dropped: each of the five
    versions after a floor."""
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


def never_altered(end: End) -> list[str]:
    """As if it had never been asked for, but for ids and versions."""
    info = end.tables()["public.t"]
    was = wide_info() if len(info["columns"]) > NARROW else table_info(TABLE, "t", 3)
    before = was.model_dump(mode="json", by_alias=True)
    counted = {"version", "schema_version", "schema_floor", "next_column_id", "next_constraint_id"}
    differs = {
        name: (before[name], value)
        for name, value in info.items()
        if value != before[name] and name not in counted
    }
    return [
        *is_true(not differs, f"differs: {differs}"),
        *is_true(info["schema_floor"] <= info["schema_version"], f"{info}"),
        *serving(end, TABLE, epoch=1),
    ]


def told(end: End, version: int, floor: int) -> list[str]:
    """What every region has in its log."""
    found = {region["region_id"]: _schema(end, region) for region in end.regions(TABLE)}
    return is_true(set(found.values()) == {(version, floor)}, f"told {found}")


def _schema(end: End, region: dict[str, Any]) -> tuple[int, int]:
    folder = end.cluster.plane.storage.folders[region["root"]]
    return folder.schema_version, folder.schema_floor
