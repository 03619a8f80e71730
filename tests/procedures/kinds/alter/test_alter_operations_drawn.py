"""Versions that an alter of drawn operations publishes: to its end, and back from each of them."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.catalog.parts.placing import Placing
from keys.model.tables import Constraint, ConstraintKind, Index, TableInfo
from metasrv.service.bodies.shapes import table_definition
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import MetaError
from metasrv_base.schema.partition import HashRule
from procedures.elements.element_targets import (
    back,
    past_no_return,
    to_end,
    to_last_undoable,
)
from procedures.kinds.alter.alter_operations import (
    AddColumnOperation,
    AddIndex,
    DropColumnOperation,
    DropIndex,
    Operation,
    RenameColumnOperation,
    SetDefaultOperation,
    SetOptionsOperation,
    ValidateIndex,
    drafted,
    edited,
)
from procedures.kinds.alter.constraint_operations import (
    AddCheck,
    DropConstraintOperation,
    DropNotNull,
    SetNotNull,
    ValidateConstraintOperation,
)
from procedures.kinds.alter.draft import AlterDraft
from procedures.kinds.alter.type_operations import AlterTypeOperation
from tests.procedures.harness.online import wide_info
from tests.procedures.kinds.alter.moved import until_end

WRITE_ONLY = ElementState.WRITE_ONLY
TABLE = wide_info().model_copy(
    update={
        "indexes": (
            Index(id=1, name="by_note", columns=(2,), unique=False),
            Index(id=2, name="by_size", columns=(3, 2), unique=False, state=WRITE_ONLY),
        ),
        "constraints": (
            Constraint(
                id=1,
                name="sized",
                kind=ConstraintKind.CHECK,
                columns=(3,),
                expression="c3 is not null",
                holds=False,
                state=WRITE_ONLY,
            ),
        ),
        "next_index_id": 3,
        "next_constraint_id": 2,
        "partition": HashRule(columns=(1,), count=3),
    }
)
COLUMNS = st.sampled_from(["note", "size", "code", "new", "other"])
INDEXES = st.sampled_from(["by_note", "by_size"])
TYPES = st.sampled_from(["int64", "string", "binary"])
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(AddColumnOperation, name=COLUMNS, type=TYPES, after=st.none() | COLUMNS),
    st.builds(
        AddColumnOperation, name=COLUMNS, type=st.just("int64"), default=st.just(7), nullable=...
    ),
    st.builds(DropColumnOperation, name=COLUMNS),
    st.builds(AlterTypeOperation, name=COLUMNS, type=TYPES),
    st.builds(RenameColumnOperation, name=COLUMNS, new_name=COLUMNS),
    st.builds(SetDefaultOperation, name=COLUMNS, default=st.none() | st.just("7")),
    st.builds(SetNotNull, name=COLUMNS, not_valid=...),
    st.builds(DropNotNull, name=COLUMNS),
    st.builds(
        AddCheck,
        name=st.sampled_from(["c1", "c2"]),
        expression=COLUMNS.map("{} is not null".format),
        not_valid=...,
    ),
    st.builds(ValidateConstraintOperation, name=st.just("sized")),
    st.builds(DropConstraintOperation, name=st.just("sized")),
    st.builds(
        AddIndex,
        name=st.sampled_from(["i1", "i2"]),
        columns=st.lists(COLUMNS, min_size=1, max_size=2, unique=True).map(tuple),
        unique=st.just(False),
    ),
    st.builds(ValidateIndex, name=INDEXES),
    st.builds(DropIndex, name=INDEXES),
    st.just(SetOptionsOperation(options={"a": "1"})),
)


def accepted(operations: Sequence[Operation]) -> tuple[tuple[Operation, ...], AlterDraft]:
    """The operations that can be, each behind those before it."""
    chosen: tuple[Operation, ...] = ()
    draft = drafted(TABLE, chosen)
    for operation in operations:
        try:
            draft = drafted(TABLE, (*chosen, operation))
        except MetaError:
            continue
        chosen = (*chosen, operation)
    return chosen, draft


def elements(info: TableInfo) -> object:
    return info.columns, info.indexes, info.constraints


def shown(info: TableInfo) -> list[object]:
    """The columns as users know them, in their order."""
    return [(each.id, each.name, each.type, each.nullable, each.default) for each in info.columns]


def check(info: TableInfo) -> None:
    """A version that can be shown: its elements name columns that it has, and each name is borne
    once."""
    ids = {column.id for column in info.columns}
    over: list[Index | Constraint] = [*info.indexes, *info.constraints]
    assert all(ids.issuperset(each.columns) for each in over)
    replaced = {id for each in info.columns for id in (each.replaces, each.replaced_by)}
    assert replaced <= {*ids, None}
    named = [each.name.lower() for each in info.columns if each.replaces is None]
    visible = [each.name.lower() for each in info.public_columns]
    others = [each.name.lower() for each in over]
    for names in (named, visible, others):
        assert len({*names}) == len(names)
    assert table_definition(info, Placing()).name == info.name


@given(st.lists(OPERATIONS, min_size=1, max_size=8))
def test_given_any_operations_that_can_be_then_each_version_is_sound_and_all_can_be_undone(
    operations: list[Operation],
) -> None:
    chosen, draft = accepted(operations)

    way = until_end(draft.entered, draft.moves, to_last_undoable)
    crossed = until_end(way[-1], draft.moves, past_no_return)[:2]
    done = until_end(edited(crossed[-1], chosen), draft.moves, to_end)

    for version in (*way[1:], *done):
        check(version)
    assert done[-1].options == draft.whole.options
    assert done[-1].public_columns == done[-1].columns
    assert shown(done[-1]) == shown(draft.whole)
    for turned in way[1:]:
        undone = until_end(turned, draft.moves, back)
        for version in undone:
            check(version)
        assert elements(undone[-1]) == elements(TABLE)


@pytest.mark.parametrize(
    ("first", "change"),
    [
        (AddColumnOperation(name="new", type="int64"), "new is new"),
        (AlterTypeOperation(name="code", type="binary"), "code changes its type"),
    ],
    ids=lambda each: getattr(each, "op", each),
)
def test_given_a_column_that_the_alter_makes_when_it_is_indexed_too_then_refused(
    first: AddColumnOperation | AlterTypeOperation, change: str
) -> None:
    index = AddIndex(name="i", columns=("note", first.name), unique=False)

    with pytest.raises(MetaError) as refused:
        drafted(TABLE, (first, index))

    assert refused.value.facts["pointer"] == "/columns"
    assert refused.value.facts["reason"] == f"column {change}: add the index afterwards"


@pytest.mark.parametrize(
    "edits",
    [
        (
            RenameColumnOperation(name="code", new_name="new"),
            RenameColumnOperation(name="new", new_name="code"),
        ),
        (
            SetDefaultOperation(name="code", default="7"),
            SetDefaultOperation(name="code", default=None),
        ),
    ],
    ids=["name", "default"],
)
@pytest.mark.parametrize(
    "last",
    [AlterTypeOperation(name="code", type="binary"), DropColumnOperation(name="code")],
    ids=lambda each: each.op,
)
def test_given_a_column_that_the_alter_has_edited_when_it_goes_then_refused(
    edits: tuple[Operation, ...], last: Operation
) -> None:
    with pytest.raises(MetaError) as refused:
        drafted(TABLE, (*edits, last))

    assert refused.value.facts["pointer"] == "/operations/2/name"
