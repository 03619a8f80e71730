"""The DML matrix: each row inserted in stage i and changed or deleted in stage j, for all i <= j,
for every kind of change, through every schema version that is in use there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from dataplane.frontend.planning.entries import ReadEntry
from keys.model.tables import Column, ConstraintKind, Index, TableInfo
from procedures.kinds.alter.alter_operations import (
    AddColumnOperation,
    AddIndex,
    DropColumnOperation,
    DropIndex,
    Operation,
)
from procedures.kinds.alter.constraint_operations import (
    AddCheck,
    DropConstraintOperation,
    DropNotNull,
    SetNotNull,
)
from tests.dataplane.frontend.planning.dml_matrix import CHANGES, Act, MarkedRegion, faults
from tests.dataplane.frontend.planning.dml_ways import WAYS, Stage
from tests.procedures.harness.tables import table_info

_ID = Column(id=1, name="id", type="int64", nullable=False)
_A = Column(id=2, name="a", type="int64", nullable=True)
_B = Column(id=3, name="b", type="string", nullable=True)
_C = Column(id=4, name="c", type="int64", nullable=True)
BARE = table_info(1024, "t", 1).model_copy(update={"columns": (_ID, _A, _B), "next_column_id": 4})
WIDE = BARE.model_copy(update={"columns": (_ID, _A, _B, _C), "next_column_id": 5})


def with_c(**facts: object) -> TableInfo:
    column = _C.model_copy(update=facts)
    return WIDE.model_copy(update={"columns": (_ID, _A, _B, column)})


def indexed(unique: bool) -> TableInfo:
    index = Index(id=1, name="by_a", columns=(2,), unique=unique)
    return BARE.model_copy(update={"indexes": (index,), "next_index_id": 2})


def checked() -> TableInfo:
    coming = AddCheck(name="positive", expression="a > 0")
    info = WAYS["to its end"](BARE, (coming,))[-1].used[-1].info
    assert [one.kind for one in info.constraints] == [ConstraintKind.CHECK]
    return info


def required_a() -> TableInfo:
    required = _A.model_copy(update={"nullable": False})
    return BARE.model_copy(update={"columns": (_ID, required, _B)})


COMES = AddColumnOperation(name="c", type="int64", nullable=True)
SEATS = AddColumnOperation(name="c", type="int64", nullable=False, default=100)
KINDS: Mapping[str, tuple[TableInfo, tuple[Operation, ...]]] = {
    "create index": (BARE, (AddIndex(name="by_a", columns=("a",), unique=False),)),
    "create unique index": (BARE, (AddIndex(name="by_a", columns=("a",), unique=True),)),
    "drop index": (indexed(False), (DropIndex(name="by_a"),)),
    "drop unique index": (indexed(True), (DropIndex(name="by_a"),)),
    "add column": (BARE, (COMES,)),
    "add required column": (BARE, (SEATS,)),
    "add column with a default": (BARE, (COMES.model_copy(update={"default": 100}),)),
    "drop column": (WIDE, (DropColumnOperation(name="c"),)),
    "drop column with a default": (
        with_c(default=100, origin_default=100),
        (DropColumnOperation(name="c"),),
    ),
    "drop required column": (with_c(nullable=False), (DropColumnOperation(name="c"),)),
    "set not null": (BARE, (SetNotNull(name="a"),)),
    "drop not null": (required_a(), (DropNotNull(name="a"),)),
    "add check": (BARE, (AddCheck(name="positive", expression="a > 0"),)),
    "drop check": (checked(), (DropConstraintOperation(name="positive"),)),
    "several at once": (
        with_c(nullable=False),
        (
            DropColumnOperation(name="c"),
            AddColumnOperation(name="d", type="int64", default=100),
            SetNotNull(name="a"),
        ),
    ),
}


def changes_of(info: TableInfo, operations: tuple[Operation, ...]) -> Mapping[str, Act]:
    """Returns the changes that concern these operations: a violation only for checks, a change of
    the moving column only for columns."""
    nulls = any(isinstance(one, SetNotNull | DropNotNull) for one in operations)
    checks = any(isinstance(one, AddCheck | DropConstraintOperation) for one in operations)
    columns = any(isinstance(one, AddColumnOperation | DropColumnOperation) for one in operations)
    wanted = {
        "changed and changed back": bool(info.indexes) or not (nulls or checks or columns),
        "set to null": nulls,
        "set below zero": checks,
        "a column that comes or goes changed": columns,
    }
    return {what: act for what, act in CHANGES.items() if wanted.get(what, True)}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.case("online 23-29", "online 44-46", "online 52", "online 55")
def test_given_a_row_of_any_stage_when_it_changes_in_any_later_one_then_nothing_is_wrong(
    kind: str, way: str
) -> None:
    info, operations = KINDS[kind]
    stages = WAYS[way](info, operations)

    wrong, cells = faults(stages, changes_of(info, operations))

    assert wrong == []
    assert cells > len(stages)


def without(stages: Sequence[Stage], number: int) -> list[Stage]:
    """The way with one of its versions left out: those before and after it meet."""
    before = stages[number - 2].used[-1]
    met = [
        replace(one, used=tuple(before if v.schema.version == number else v for v in one.used))
        for one in stages
    ]
    return [*met[: number - 1], *met[number:]]


def blind(region: MarkedRegion, made: Mapping[int, Mapping[bytes, ReadEntry]]) -> None:
    """A backfill that writes whatever it has read."""
    for family, entries in made.items():
        region.entries.setdefault(family, {}).update(entries)


@pytest.mark.parametrize("planted", ["no delete-only", "no write-only", "no reorg", "blind reorg"])
def test_given_a_way_that_leaves_something_out_then_the_matrix_says_which_row_is_wrong(
    planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, operations = KINDS["create index"]
    stages = WAYS["to its end"](info, operations)
    if planted in ("no delete-only", "no write-only"):
        stages = without(stages, 2 if planted == "no delete-only" else 3)
    elif planted == "no reorg":
        stages = [replace(one, is_reorg=False) for one in stages]
    else:
        monkeypatch.setattr(MarkedRegion, "ingest", blind)

    wrong, _ = faults(stages, {"deleted": CHANGES["deleted"]})

    assert wrong != []
    assert all(one.startswith("inserted in ") for one in wrong)
