"""The results of the operations of one alter, without a store: moves, edits and refusals."""

import pytest

from keys.model.tables import Index, TableInfo
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import MetaError
from metasrv_base.schema.partition import HashRule
from procedures.elements.element_targets import (
    What,
    back,
    moved,
    past_no_return,
    to_end,
    to_last_undoable,
)
from procedures.kinds.alter.alter_operations import (
    AddColumnOperation,
    AddIndex,
    DropColumnOperation,
    DropIndex,
    DropNotNull,
    Operation,
    RenameColumnOperation,
    SetDefaultOperation,
    ValidateIndex,
    drafted,
    edited,
)
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.online import ALTERS, wide_info
from tests.procedures.harness.tables import table_info
from tests.procedures.kinds.alter.moved import until_end

ADD = AddColumnOperation(name="seats", type="int32", nullable=False, default=1)
INDEXED = wide_info().model_copy(
    update={
        "indexes": (Index(id=1, name="by_note", columns=(2,), unique=False),),
        "next_index_id": 2,
        "partition": HashRule(columns=(1,), count=3),
    }
)


def states(info: TableInfo) -> dict[str, str]:
    return {column.name: column.state.value for column in info.columns}


@pytest.mark.parametrize(
    ("operations", "pointer", "code"),
    [
        ((ADD, ADD), "/operations/1/column/name", "already-exists"),
        (
            (DropColumnOperation(name="size"), AddColumnOperation(name="SIZE", type="int8")),
            "/operations/1/column/name",
            "already-exists",
        ),
        (
            (
                RenameColumnOperation(name="note", new_name="n"),
                AddColumnOperation(name="note", type="int8"),
            ),
            "/operations/1/column/name",
            "already-exists",
        ),
        (
            (DropColumnOperation(name="size"), RenameColumnOperation(name="note", new_name="size")),
            "/operations/1/new_name",
            "already-exists",
        ),
        ((DropColumnOperation(name="id"),), "/operations/0/name", "invalid-schema-change"),
        ((DropColumnOperation(name="no"),), "/operations/0/name", "invalid-schema-change"),
        (
            (DropColumnOperation(name="size"), DropColumnOperation(name="size")),
            "/operations/1/name",
            "invalid-schema-change",
        ),
        ((ADD, DropColumnOperation(name="seats")), "/operations/1/name", "invalid-schema-change"),
        ((DropNotNull(name="id"),), "/operations/0/name", "invalid-schema-change"),
        (
            (ADD, SetDefaultOperation(name="seats", default=2)),
            "/operations/1/name",
            "invalid-schema-change",
        ),
        (
            (SetDefaultOperation(name="note", default=7),),
            "/operations/0/default",
            "invalid-request",
        ),
        (
            (AddColumnOperation(name="x", type="int8", after="no"),),
            "/operations/0/after",
            "invalid-schema-change",
        ),
    ],
)
@pytest.mark.case("catalog 47", "catalog 60", "catalog 66")
def test_given_operations_that_cannot_be_then_the_place_is_named(
    operations: tuple[Operation, ...], pointer: str, code: str
) -> None:
    with pytest.raises(MetaError) as refused:
        drafted(wide_info(), operations)

    assert (refused.value.facts["pointer"], refused.value.code) == (pointer, code)


@pytest.mark.case("online 50")
def test_given_a_name_that_comes_close_when_there_is_no_such_index_then_it_is_suggested() -> None:
    with pytest.raises(MetaError) as refused:
        drafted(INDEXED, (DropIndex(name="by_not"),))

    assert refused.value.facts["did_you_mean"] == "by_note"


@pytest.mark.case("catalog 48", "catalog 79")
def test_given_an_index_over_a_column_when_dropped_then_both_leave_in_the_same_versions() -> None:
    draft = drafted(INDEXED, (DropColumnOperation(name="note"),))

    undoable = until_end(draft.entered, draft.moves, to_last_undoable)
    over = moved(undoable[-1], draft.moves, past_no_return)
    end = until_end(over, draft.moves, to_end)

    versions = [*undoable, over, *end[1:]]
    of_column = [states(info).get("note", "absent") for info in versions]
    of_index = [[one.state.value for one in info.indexes] or ["absent"] for info in versions]
    assert of_column == ["public", "write-only", "delete-only", "absent"]
    assert of_index == [[state] for state in of_column]


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (AddIndex(name="BY_NOTE", columns=("id",), unique=False), "already-exists"),
        (AddIndex(name="x", columns=("no",), unique=False), "invalid-schema-change"),
        (AddIndex(name="x", columns=("note",), unique=True), "unique-needs-partition-columns"),
        (DropIndex(name="no"), "not-found"),
    ],
)
@pytest.mark.case("catalog 84", "catalog 86")
def test_given_an_index_that_cannot_be_then_it_is_refused(operation: Operation, code: str) -> None:
    """The name stays taken until the index is gone, whatever state it is in."""
    hidden = INDEXED.indexes[0].model_copy(update={"state": ElementState.DELETE_ONLY})

    with pytest.raises(MetaError) as refused:
        drafted(INDEXED.model_copy(update={"indexes": (hidden,)}), (operation,))

    assert refused.value.code == code


@pytest.mark.parametrize(
    "operation", [DropIndex(name="by_note"), ValidateIndex(name="by_note")], ids=lambda o: o.op
)
def test_given_an_index_that_the_same_alter_drops_then_it_is_not_found(
    operation: Operation,
) -> None:
    with pytest.raises(MetaError) as refused:
        drafted(INDEXED, (DropIndex(name="by_note"), operation))

    assert refused.value.code == "not-found"


def test_given_an_index_that_the_same_alter_adds_when_its_column_goes_then_it_is_refused() -> None:
    added = AddIndex(name="x", columns=("size",), unique=False)

    with pytest.raises(MetaError) as refused:
        drafted(INDEXED, (added, DropColumnOperation(name="size")))

    assert refused.value.facts["pointer"] == "/operations/1/name"


def test_given_an_index_and_its_column_when_both_are_dropped_then_the_index_goes_once() -> None:
    operations = (DropIndex(name="by_note"), DropColumnOperation(name="note"))

    draft = drafted(INDEXED, operations)

    assert [move.what for move in draft.moves] == [What.INDEX, What.COLUMN]


def test_given_a_column_under_an_index_not_valid_when_its_drop_is_undone_then_so_is_the_index() -> (
    None
):
    left = INDEXED.indexes[0].model_copy(update={"state": ElementState.WRITE_ONLY})
    info = INDEXED.model_copy(update={"indexes": (left,)})
    draft = drafted(info, (DropColumnOperation(name="note"),))

    last_undoable = until_end(info, draft.moves, to_last_undoable)[-1]
    undone = until_end(last_undoable, draft.moves, back)[-1]

    assert states(last_undoable)["note"] != "public"
    assert (undone.columns, undone.indexes) == (info.columns, info.indexes)


def test_given_a_table_of_one_region_then_any_columns_may_be_unique() -> None:
    one = table_info(TABLE, "t", 1)

    draft = drafted(one, (AddIndex(name="x", columns=("note",), unique=True),))

    assert [index.columns for index in draft.entered.indexes] == [(2,)]


@pytest.mark.case("catalog 65")
def test_given_changes_of_all_sorts_then_each_goes_its_way_and_one_version_makes_all_public() -> (
    None
):
    draft = drafted(wide_info(), ALTERS.operations)

    undoable = until_end(draft.entered, draft.moves, to_last_undoable)
    over = edited(moved(undoable[-1], draft.moves, past_no_return), ALTERS.operations)
    end = until_end(over, draft.moves, to_end)

    assert [states(info).get("seats") for info in undoable] == [
        "absent",
        "delete-only",
        "write-only",
    ]
    assert [states(info)["size"] for info in undoable] == ["public", "write-only", "write-only"]
    assert states(over)["seats"] == "public"
    assert states(over)["size"] == "delete-only"
    assert "size" not in states(end[-1])
    assert set(states(end[-1]).values()) == {"public"}


@pytest.mark.case("online 48")
def test_given_a_column_without_any_default_when_it_goes_then_others_can_still_insert() -> None:
    """A18: who does not know the column any more writes rows that who knows it must read."""
    draft = drafted(wide_info(), (DropColumnOperation(name="size"),))

    hidden = moved(draft.entered, draft.moves, to_last_undoable)
    again = moved(hidden, draft.moves, back)

    (size,) = [column for column in hidden.columns if column.name == "size"]
    assert (size.state, size.nullable, size.origin_default) == ("write-only", False, "0.00")
    assert again == wide_info()


@pytest.mark.case("catalog 60")
def test_given_not_null_when_it_goes_then_it_is_a_constraint_on_its_way() -> None:
    draft = drafted(wide_info(), (DropNotNull(name="code"),))

    hidden = moved(draft.entered, draft.moves, to_last_undoable)
    gone = moved(hidden, draft.moves, past_no_return)

    (constraint,) = hidden.constraints
    assert (constraint.kind, constraint.columns) == ("not-null", (4,))
    assert constraint.state is ElementState.WRITE_ONLY
    assert [c.nullable for c in hidden.columns if c.name == "code"] == [True]
    assert gone.constraints == ()


@pytest.mark.parametrize("steps", [1, 2])
def test_given_any_state_when_it_goes_back_then_only_ids_are_taken(steps: int) -> None:
    draft = drafted(wide_info(), ALTERS.operations)
    info = draft.entered
    for _ in range(steps):
        info = moved(info, draft.moves, to_last_undoable)

    rest = until_end(info, draft.moves, back)

    ids = {"next_column_id": 5, "next_constraint_id": 1}
    assert rest[-1].model_copy(update=ids) == wide_info()
    assert len(rest) == steps + 1
