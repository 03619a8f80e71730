"""The difference of two versions of a table, applied to the first, makes the second."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from keys.catalog.parts.placing import BUILT_IN
from keys.model.tables import Column, TableInfo
from metasrv.service.bodies.shapes import shown_check
from metasrv.service.catalog.change_text import altered as said
from metasrv.service.catalog.table_diff import difference
from metasrv.service.ddl.ddl_tables import stored_operation
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import MetaError
from metasrv_base.wire.api.changes import AlterOperation
from procedures.elements.element_targets import moved, past_no_return, to_end, to_last_undoable
from procedures.kinds.alter.alter_operations import drafted, edited
from tests.keys.model.samples import INFO

ALTER = TypeAdapter[AlterOperation](AlterOperation)
NAMES = st.sampled_from(["a", "b", "c", "d"])
TYPES = st.sampled_from(["int32", "int64", "string"])
COLUMN = st.fixed_dictionaries({"name": NAMES, "type": TYPES, "default": st.none()})
OPERATIONS = st.one_of(
    st.fixed_dictionaries({"op": st.just("add_column"), "column": COLUMN, "after": NAMES}),
    st.fixed_dictionaries({"op": st.just("add_column"), "column": COLUMN}),
    st.fixed_dictionaries({"op": st.just("drop_column"), "name": NAMES}),
    st.fixed_dictionaries({"op": st.just("rename_column"), "name": NAMES, "new_name": NAMES}),
    st.fixed_dictionaries({"op": st.just("alter_type"), "name": NAMES, "type": TYPES}),
    st.fixed_dictionaries(
        {"op": st.just("set_default"), "name": NAMES, "default": st.sampled_from([None, 7, "x"])}
    ),
    st.fixed_dictionaries(
        {"op": st.just("set_nullable"), "name": NAMES, "nullable": st.booleans()}
    ),
    st.fixed_dictionaries(
        {
            "op": st.just("add_constraint"),
            "name": st.sampled_from(["k", "l"]),
            "check": st.sampled_from(["a > 1", "b is not null", "c = d"]),
            "not_valid": st.booleans(),
        }
    ),
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["drop_constraint", "validate_constraint"]),
            "name": st.sampled_from(["k", "l"]),
        }
    ),
    st.fixed_dictionaries(
        {
            "op": st.just("set_options"),
            "options": st.dictionaries(
                st.sampled_from(["app.x", "app.y"]), st.sampled_from(["1", None]), min_size=1
            ),
        }
    ),
)


def column(id: int, name: str, type: str = "int64", **more: Any) -> Column:
    return Column(id=id, name=name, type=type, nullable=True, **more)


BASE = INFO.model_copy(
    update={
        "columns": (
            Column(id=1, name="id", type="int64", nullable=False),
            column(2, "a", "int32"),
            column(3, "b"),
            column(4, "c", "string"),
        ),
        "primary_key": (1,),
        "next_column_id": 5,
        "indexes": (),
        "constraints": (),
    }
)


def altered(info: TableInfo, operation: AlterOperation) -> TableInfo:
    """The table once an alter of that operation is over. Raises as a request for it does."""
    operations = (stored_operation(operation, 0, "", BUILT_IN),)
    draft = drafted(info, operations)
    table = draft.entered
    while (new := moved(table, draft.moves, to_last_undoable)) != table:
        table = new
    table = edited(moved(table, draft.moves, past_no_return), operations)
    while (new := moved(table, draft.moves, to_end)) != table:
        table = new
    return table


def shown(info: TableInfo) -> object:
    """All that users see of it, but ids."""
    names = {each.id: each.name for each in info.columns}
    columns = [(each.name, each.type, each.nullable, each.default) for each in info.public_columns]
    constraints = {
        each.name: (each.kind, shown_check(each, names), each.holds, each.state)
        for each in info.constraints
    }
    return columns, constraints, info.options


@given(requests=st.lists(OPERATIONS, max_size=12))
def test_given_any_alters_then_the_difference_makes_one_version_into_the_other(
    requests: list[dict[str, Any]],
) -> None:
    before, after = BASE, BASE
    for request in requests:
        try:
            after = altered(after, ALTER.validate_python(request))
        except MetaError:
            continue

    table = before
    for operation in difference(before, after).alter:
        assert said(operation)
        table = altered(table, operation)

    assert shown(table) == shown(after)
    assert difference(after, after).alter == ()


def test_given_two_columns_that_exchanged_their_names_then_the_renames_can_be_made() -> None:
    swapped = [("a", "x"), ("b", "a"), ("x", "b")]
    after = BASE
    for name, new_name in swapped:
        request = {"op": "rename_column", "name": name, "new_name": new_name}
        after = altered(after, ALTER.validate_python(request))

    table = BASE
    operations = difference(BASE, after).alter
    for operation in operations:
        table = altered(table, operation)

    assert [operation.op for operation in operations] == ["rename_column"] * 3
    assert shown(table) == shown(after)


@pytest.mark.parametrize("state", [ElementState.DELETE_ONLY, ElementState.WRITE_ONLY])
def test_given_a_column_that_is_not_public_yet_then_it_is_no_difference(
    state: ElementState,
) -> None:
    coming = column(5, "n", state=state)

    after = BASE.model_copy(update={"columns": (*BASE.columns, coming)})

    assert difference(BASE, after).alter == ()
