"""The lives of batches."""

from keys.commit.staging import StagingSizes
from keys.model.records import ProcedureOutcome
from procedures.ports import TransactionLimits
from tests.procedures.harness.batches.batches import (
    MADE,
    MISSED,
    MIXED,
    SWEPT,
    all_done,
    nothing_to_do,
    schema_swept,
    tables_made,
    with_a_node_that_refuses,
    with_two_small_tables,
)
from tests.procedures.harness.ends import nothing
from tests.procedures.harness.scenario import FULL, Scenario

SMALL = TransactionLimits(operations=3)
TINY = TransactionLimits(operations=3, record_bytes=1)
CUT_SMALL = StagingSizes(part_bytes=2_000, chunk_ops=6)

BATCH_SCENARIOS = (
    Scenario("batch", "batch", MIXED, with_two_small_tables, {FULL: all_done}),
    Scenario(
        "batch, a schema with its tables",
        "batch",
        SWEPT,
        with_two_small_tables,
        {FULL: schema_swept},
    ),
    Scenario(
        "batch, in parts",
        "batch",
        MIXED,
        with_two_small_tables,
        {FULL: all_done},
        one_transaction=SMALL,
        sizes=CUT_SMALL,
    ),
    Scenario(
        "batch, commands in parts",
        "batch",
        MIXED,
        with_two_small_tables,
        {FULL: all_done},
        one_transaction=TINY,
        sizes=CUT_SMALL,
    ),
    Scenario(
        "batch, commands in parts, node refuses",
        "batch",
        MADE,
        with_a_node_that_refuses,
        {ProcedureOutcome.ROLLED_BACK: nothing, ProcedureOutcome.FAILED: nothing},
        deadline_ms=500,
        one_transaction=TINY,
        sizes=CUT_SMALL,
    ),
    Scenario("batch, nothing to do", "batch", MISSED, with_two_small_tables, {FULL: nothing_to_do}),
    Scenario(
        "batch, node refuses",
        "batch",
        MADE,
        with_a_node_that_refuses,
        {ProcedureOutcome.ROLLED_BACK: nothing, ProcedureOutcome.FAILED: nothing},
        deadline_ms=500,
    ),
    Scenario(
        "batch, cancelled as it commits",
        "batch",
        MADE,
        with_two_small_tables,
        {FULL: tables_made, ProcedureOutcome.CANCELLED: nothing},
        cancel_after_ms=0,
    ),
)
