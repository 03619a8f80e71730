"""Edits of an alter make no schema version, and still must reach all holders before the answer."""

import pytest

from keys.model.records import ProcedureOutcome
from procedures.kinds.alter.alter_operations import (
    Operation,
    RenameColumnOperation,
    SetDefaultOperation,
    SetOptionsOperation,
)
from procedures.kinds.alter.copies_operations import SetCopiesOperation
from tests.fakes.holders import LEASE_MS
from tests.procedures.harness.ends import OTHER
from tests.procedures.kinds.alter.online import HOLDER, Change, online


@pytest.mark.parametrize(
    ("operation", "is_waited_for"),
    [
        (SetDefaultOperation(name="note", default="none"), True),
        (RenameColumnOperation(name="note", new_name="text"), True),
        (SetOptionsOperation(options={"a": "1"}), False),
        (SetCopiesOperation(named=("replicas",), replicas=2, placed_replicas=1), False),
    ],
    ids=["set_default", "rename_column", "set_options", "set_copies"],
)
def test_given_a_silent_holder_when_statements_depend_on_an_edit_then_it_is_waited_for(
    operation: Operation, is_waited_for: bool
) -> None:
    """Else a statement that begins behind the answer could still go by what was before."""

    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, OTHER, 1)
        at.cluster.holders.dies(HOLDER)
        before_ms = at.cluster.clock.mono_ms()

        end = await (await at.submit(operation)).end()

        took_ms = at.cluster.clock.mono_ms() - before_ms
        assert end.outcome is ProcedureOutcome.SUCCEEDED
        assert (await at.info()).schema_version == 1
        assert (took_ms >= LEASE_MS) == is_waited_for

    online(scenario)
