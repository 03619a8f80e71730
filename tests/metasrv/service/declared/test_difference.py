"""The difference of two declared states: done in order, its operations make one into the other."""

from typing import Any

import pytest
from hypothesis import assume, event, given

from metasrv.service.declared.canonical import check_of, default_of, partition_key
from metasrv.service.declared.declared_errors import declared_errors
from metasrv.service.declared.difference import difference
from metasrv.service.declared.in_place import default_partition
from metasrv.service.declared.operations import Operation
from metasrv_base.wire.api import batches
from metasrv_base.wire.language.declared import DeclaredTable, DesiredState
from tests.metasrv.service.declared.drawn_states import pairs, states
from tests.metasrv.service.declared.model import Model, begun, carry_out, state_of


def shown(state: DesiredState) -> dict[str, Any]:
    """Returns the parts of a declared state that count, in one form."""
    return {
        "placements": {
            each.name: each.model_copy(update={"renamed_from": None}) for each in state.placements
        },
        "spaces": {
            (catalog.name, each.name): each.comment
            for catalog in state.catalogs
            for each in catalog.tablespaces
        },
        "tables": {
            (catalog.name, schema.name, table.name): table_shown(table)
            for catalog in state.catalogs
            for schema in catalog.schemas
            for table in schema.tables
        },
    }


def table_shown(table: DeclaredTable) -> dict[str, Any]:
    names = [column.name for column in table.columns]
    partition = table.partition or default_partition(table, 1)
    return {
        "columns": {
            each.name: (each.type, each.nullable, default_of(each)) for each in table.columns
        },
        "key": table.primary_key,
        "partition": partition_key(table.model_copy(update={"partition": partition})),
        "options": table.options,
        "indexes": {each.name: (each.columns, each.unique) for each in table.indexes},
        "constraints": {each.name: check_of(str(each.check), names) for each in table.constraints},
        "placing": (table.placement, table.tablespace or "default"),
    }


def must_hold(model: Model, declared: DesiredState, *, pruned: bool) -> None:
    there, wanted = shown(state_of(model)), shown(declared)
    for what, objects in wanted.items():
        assert {name: there[what].get(name) for name in objects} == objects
    if pruned:
        named = {(each.name, schema.name) for each in declared.catalogs for schema in each.schemas}
        assert {name for name in there["tables"] if name[:2] in named} == set(wanted["tables"])


def done(model: Model, declared: DesiredState, prune: bool) -> tuple[Operation, ...] | None:
    """The operations, carried out; None: there is a refusal."""
    plan = difference(state_of(model), declared, prune=prune)
    if plan.refusals:
        return None
    carry_out(model, plan.operations)
    must_hold(model, declared, pruned=prune)
    return tuple(plan.operations)


@given(pairs())
@pytest.mark.slow
def test_given_two_states_when_the_difference_is_done_then_it_is_the_other_and_none_is_left(
    drawn: tuple[DesiredState, DesiredState],
) -> None:
    first, second = drawn
    assume(not [*declared_errors(first), *declared_errors(second)])
    model = begun()
    assume(done(model, first, prune=False) is not None)
    assume(done(model, second, prune=True) is not None)
    again = difference(state_of(model), second, prune=True)
    assert (again.operations, again.refusals) == ([], [])


@given(states())
@pytest.mark.slow
def test_given_a_state_when_it_is_declared_as_it_is_then_there_is_no_difference(
    first: DesiredState,
) -> None:
    assume(not list(declared_errors(first)))
    model = begun()
    assume(done(model, first, prune=False) is not None)
    again = difference(state_of(model), state_of(model), prune=True)
    assert (again.operations, again.refusals) == ([], [])


@given(states(), states())
@pytest.mark.slow
def test_given_no_prune_then_tables_that_are_not_declared_stay(
    first: DesiredState, second: DesiredState
) -> None:
    assume(not [*declared_errors(first), *declared_errors(second)])
    model = begun()
    assume(done(model, first, prune=False) is not None)
    plan = difference(state_of(model), second)
    drops = [each for each in plan.operations if isinstance(each.command, batches.DropsTable)]
    assert drops == []
    event(f"{min(len(plan.operations), 5)} operations, refused {bool(plan.refusals)}")
