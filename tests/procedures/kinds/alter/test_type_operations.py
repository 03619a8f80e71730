"""A column of another type in the place of one that goes: what it comes to, and what is refused."""

import pytest

from keys.model.records import ProcedureOutcome
from keys.model.tables import (
    Column,
    Constraint,
    ConstraintKind,
    Index,
    OriginColumnRecord,
    TableInfo,
)
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import MetaError, Refused
from metasrv_base.schema.partition import HashRule
from procedures.elements.element_targets import (
    back,
    moved,
    past_no_return,
    to_end,
    to_last_undoable,
)
from procedures.kinds.alter.alter_operations import (
    AddColumnOperation,
    DropColumnOperation,
    DropIndex,
    Operation,
    RenameColumnOperation,
    SetDefaultOperation,
    drafted,
    edited,
)
from procedures.kinds.alter.alter_table import WAIT_MS
from procedures.kinds.alter.constraint_operations import (
    AddCheck,
    DropConstraintOperation,
    SetNotNull,
)
from procedures.kinds.alter.type_operations import ORIGINS_MAX, AlterTypeOperation
from procedures.steps.region_orders import schema_order
from tests.crash.enumeration import life
from tests.procedures.harness.retyping import RETYPES, not_retyped, with_misfits
from tests.procedures.harness.scenario import Scenario
from tests.procedures.harness.tables import table_info, table_route
from tests.procedures.kinds.alter.moved import until_end

PAID = Constraint(id=1, name="paid", kind=ConstraintKind.CHECK, columns=(5,), expression="c5 > 0")


def info() -> TableInfo:
    """`id, at | note, size, price, day`: an index is over `size`, a check over `price`."""
    columns = (
        Column(id=1, name="id", type="int64", nullable=False),
        Column(id=2, name="at", type="int64", nullable=False),
        Column(id=3, name="note", type="string", nullable=True),
        Column(id=4, name="size", type="int32", nullable=False, default=3, origin_default=2),
        Column(id=5, name="price", type="float64", nullable=True),
        Column(id=6, name="day", type="date", nullable=True),
        Column(id=7, name="word", type="string", nullable=True, default="none"),
    )
    return table_info(1024, "t", 1).model_copy(
        update={
            "columns": columns,
            "next_column_id": 8,
            "primary_key": (1, 2),
            "partition": HashRule(columns=(2,), count=2),
            "constraints": (PAID,),
            "next_constraint_id": 2,
        }
    )


def indexed() -> TableInfo:
    index = Index(id=1, name="by_size", columns=(4,), unique=False)
    return info().model_copy(update={"indexes": (index,), "next_index_id": 2})


def to(name: str, type: str) -> AlterTypeOperation:
    return AlterTypeOperation(name=name, type=type)


REFUSED: dict[str, tuple[tuple[Operation, ...], str, str]] = {
    "no such column": ((to("no", "int8"),), "/operations/0/name", "does not exist"),
    "a near column": ((to("pricee", "int8"),), "/operations/0/name", "did you mean price?"),
    "no such type": ((to("note", "int7"),), "/operations/0/type", ""),
    "the same type": ((to("day", "date"),), "/operations/0/type", "is date already"),
    "no conversion": ((to("day", "float64"),), "/operations/0/type", "add another column"),
    "primary key": ((to("id", "string"),), "/operations/0/name", "primary key"),
    "partition": ((to("at", "string"),), "/operations/0/name", "primary key"),
    "index": ((to("size", "int64"),), "/operations/0/name", "index by_size is over"),
    "check": ((to("price", "string"),), "/operations/0/name", "constraint paid is over"),
    "not null on its way": (
        (SetNotNull(name="note", not_valid=True), to("note", "binary")),
        "/operations/1/name",
        "is over column note",
    ),
    "not null": (
        (SetNotNull(name="note"), to("note", "binary")),
        "/operations/1/name",
        "something else",
    ),
    "another default": (
        (SetDefaultOperation(name="note", default="x"), to("note", "binary")),
        "/operations/1/name",
        "something else",
    ),
    "another default then": (
        (to("note", "binary"), SetDefaultOperation(name="note", default="eA==")),
        "/operations/1/name",
        "type of column note changes",
    ),
    "renamed": (
        (RenameColumnOperation(name="note", new_name="n"), to("n", "binary")),
        "/operations/1/name",
        "something else",
    ),
    "renamed then": (
        (to("note", "binary"), RenameColumnOperation(name="note", new_name="n")),
        "/operations/1/name",
        "rename it then",
    ),
    "dropped then": (
        (to("note", "binary"), DropColumnOperation(name="note")),
        "/operations/1/name",
        "type of column note changes",
    ),
    "twice": (
        (to("note", "binary"), to("note", "int8")),
        "/operations/1/name",
        "type of column note changes",
    ),
    "new": (
        (AddColumnOperation(name="x", type="int8"), to("x", "int16")),
        "/operations/1/name",
        "is new",
    ),
    "checked then": (
        (to("note", "int64"), AddCheck(name="c", expression="note > 0")),
        "/operations/1/check",
        "column note changes its type",
    ),
    "a default that does not convert": (
        (to("word", "int64"),),
        "/operations/0/type",
        "set another one first",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
@pytest.mark.case("catalog 64")
def test_given_a_type_that_a_column_cannot_have_when_drafted_then_refused_with_the_reason(
    why: str,
) -> None:
    operations, pointer, reason = REFUSED[why]

    with pytest.raises(MetaError) as refused:
        drafted(indexed(), operations)

    assert refused.value.facts["pointer"] == pointer
    assert reason in str(refused.value.facts.get("reason", ""))


def test_given_a_column_that_has_had_many_types_then_one_more_is_refused_with_a_way_out() -> None:
    table, types = indexed(), ("binary", "string")

    for change in range(ORIGINS_MAX):
        draft = drafted(table, (to("note", types[change % 2]),))
        table = draft.entered
        for move in (to_last_undoable, past_no_return, to_end):
            table = moved(table, draft.moves, move)
    with pytest.raises(Refused, match="add another column") as refused:
        drafted(table, (to("note", types[ORIGINS_MAX % 2]),))

    assert refused.value.facts["pointer"] == "/operations/0/name"


def test_given_what_is_over_a_column_when_dropped_in_the_same_alter_then_it_may_change() -> None:
    operations = (
        DropIndex(name="by_size"),
        DropConstraintOperation(name="paid"),
        to("size", "int64"),
        to("price", "string"),
    )
    draft = drafted(indexed(), operations)

    last_undoable = until_end(draft.entered, draft.moves, to_last_undoable)[-1]
    over = moved(last_undoable, draft.moves, past_no_return)
    ends = until_end(over, draft.moves, to_end)

    for version in (last_undoable, over, *ends):
        ids = {column.id for column in version.columns}
        assert all(set(one.columns) <= ids for one in version.indexes)
    assert (ends[-1].indexes, ends[-1].constraints) == ((), ())
    assert [one.type for one in ends[-1].columns][3:5] == ["int64", "string"]


def test_given_a_new_type_when_it_goes_its_way_then_both_columns_change_at_once() -> None:
    before = info()
    draft = drafted(before, (to("size", "int64"),))

    last_undoable = until_end(draft.entered, draft.moves, to_last_undoable)[-1]
    over = moved(last_undoable, draft.moves, past_no_return)
    (_, end) = until_end(over, draft.moves, to_end)

    sizes = [
        [(one.id, one.type, one.state.value) for one in version.columns if one.name == "size"]
        for version in (last_undoable, over, end)
    ]
    assert sizes == [
        [(4, "int32", "public"), (8, "int64", "write-only")],
        [(4, "int32", "write-only"), (8, "int64", "public")],
        [(8, "int64", "public")],
    ]
    assert [one.name for one in end.columns] == [one.name for one in before.columns]
    (new,) = (one for one in end.columns if one.id == 8)
    assert (new.default, new.origin_default, new.nullable) == (3, 2, False)
    assert (new.replaces, new.replaced_by) == (None, None)
    assert new.origin_columns == (OriginColumnRecord(id=4, type="int32"),)


def test_given_a_last_undoable_state_when_it_goes_back_then_the_column_is_as_it_was() -> None:
    before = info()
    draft = drafted(before, (to("size", "int64"), to("note", "int8")))
    last_undoable = until_end(draft.entered, draft.moves, to_last_undoable)[-1]

    end = until_end(last_undoable, draft.moves, back)[-1]

    assert end.columns == before.columns


def test_given_a_type_that_changed_when_it_changes_again_then_the_last_one_comes_first() -> None:
    first = drafted(info(), (to("size", "int64"),))
    there = until_end(
        moved(
            until_end(first.entered, first.moves, to_last_undoable)[-1], first.moves, past_no_return
        ),
        first.moves,
        to_end,
    )[-1]

    draft = drafted(there, (to("size", "string"),))

    (new,) = (one for one in draft.entered.columns if one.replaces == 8)
    assert new.origin_columns == (
        OriginColumnRecord(id=8, type="int64"),
        OriginColumnRecord(id=4, type="int32"),
    )
    assert (new.default, new.origin_default) == ("3", "2")


def test_given_an_origin_default_that_does_not_convert_when_drafted_then_rows_will_tell() -> None:
    word = info().columns[6].model_copy(update={"default": None, "origin_default": "none"})
    table = info().model_copy(update={"columns": (*info().columns[:6], word)})

    draft = drafted(table, (to("word", "int64"),))

    (new,) = (one for one in draft.entered.columns if one.replaces == 7)
    assert new.origin_default is None
    assert [one.lossy for one in draft.moves] == [True, False]


@pytest.mark.parametrize(
    ("type", "is_lossy"), [("int64", False), ("string", False), ("int8", True)]
)
def test_given_a_type_when_drafted_then_rows_are_looked_at_unless_every_value_fits(
    type: str, is_lossy: bool
) -> None:
    draft = drafted(info(), (to("size", type),))
    state = RETYPES.model_copy(update={"moves": draft.moves})

    assert state.after_last_undoable == ("validate" if is_lossy else "commit")


def test_given_another_column_when_renamed_in_the_same_alter_then_both_are_done() -> None:
    operations = (to("size", "int64"), RenameColumnOperation(name="note", new_name="text"))
    draft = drafted(info(), operations)
    last_undoable = until_end(draft.entered, draft.moves, to_last_undoable)[-1]

    over = edited(moved(last_undoable, draft.moves, past_no_return), operations)

    public = [one for one in over.columns if one.state is ElementState.PUBLIC]
    assert [(one.id, one.name) for one in public][2:4] == [(3, "text"), (8, "size")]


def test_given_a_change_under_way_when_regions_are_told_then_a_hidden_column_may_be_null() -> None:
    draft = drafted(info(), (to("size", "int64"),))
    last_undoable = until_end(draft.entered, draft.moves, to_last_undoable)[-1]
    over = moved(last_undoable, draft.moves, past_no_return)
    (region, *_) = table_route(1024, ("dn-1",)).region_routes

    told = [
        {one.id: one.nullable for one in schema_order(version, region).columns}
        for version in (last_undoable, over)
    ]

    assert [(columns[4], columns[8]) for columns in told] == [(False, True), (True, False)]


@pytest.mark.case("online 51")
@pytest.mark.case("catalog 61")
def test_given_rows_that_do_not_fit_when_looked_at_then_undone_and_they_are_named() -> None:
    scenario = Scenario(
        "alter_table, rows do not fit a type",
        "alter_table",
        RETYPES,
        with_misfits,
        {ProcedureOutcome.ROLLED_BACK: not_retyped},
        deadline_ms=WAIT_MS,
    )

    assert life(scenario, None).wrong == ()
