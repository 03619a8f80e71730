"""One life of each kind that acts on regions with copies."""

from keys.model.records import ProcedureOutcome
from procedures.kinds.copies.add_copy import AddCopy
from procedures.kinds.copies.remove_copy import RemoveCopy
from procedures.kinds.failover.change_copies import ChangeCopies
from procedures.kinds.failover.failover_table import FailoverTable
from procedures.kinds.tables.drop_table import DropTable
from procedures.kinds.tables.purge_table import PurgeTable
from procedures.kinds.tables.undrop_table import UndropTable
from tests.procedures.harness.copies.altering import ALTERING_SCENARIOS
from tests.procedures.harness.copies.copied_ends import (
    added,
    dropped_with_copies,
    joined,
    lost_learner_gone,
    made_anew,
    promoted,
    promoted_again,
    purged_with_copies,
    removed,
    still_there,
    unchanged,
    undropped_with_copies,
)
from tests.procedures.harness.copies.copied_tables import (
    with_copied_table,
    with_copied_table_and_dead_node,
    with_copied_table_and_refusing_node,
    with_copied_table_and_restarting_node,
    with_dropped_copied_table,
)
from tests.procedures.harness.copies.creating import CREATING_SCENARIOS
from tests.procedures.harness.copies.creating_elsewhere import CREATING_ELSEWHERE_SCENARIOS
from tests.procedures.harness.copies.draining import DRAINING_SCENARIOS
from tests.procedures.harness.copies.leaving import LEAVING_SCENARIOS
from tests.procedures.harness.copies.moving import MOVING_SCENARIOS
from tests.procedures.harness.copies.moving_dropped import MOVING_DROPPED_SCENARIOS
from tests.procedures.harness.copies.switching import SWITCHING_SCENARIOS
from tests.procedures.harness.copies.truncating import TRUNCATING_SCENARIOS
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import region_ids

NAMED = {"catalog": "main", "schema_name": "public", "name": "t", "table_id": TABLE}
MOVED = FailoverTable(
    table_id=TABLE,
    name="main.public.t",
    source="dn-1",
    region_ids=region_ids(TABLE, 3),
    reason="test",
)

JOIN = ChangeCopies(
    table_id=TABLE,
    name="main.public.t",
    region_id=region_ids(TABLE, 2)[1],
    change="join",
    node="dn-2",
    root=f"/disks/dn-2/regions/{region_ids(TABLE, 2)[1]}-1",
    epoch=1,
    version=1,
)

FIRST, SECOND, THIRD = region_ids(TABLE, 3)
OF_TABLE = {"table_id": TABLE, "name": "main.public.t", "reason": "test"}
ADD = AddCopy.model_validate({**OF_TABLE, "region_id": FIRST, "node": "dn-3"})
REMAKE = ADD.model_copy(
    update={
        "region_id": SECOND,
        "node": "dn-2",
        "replaces": f"/disks/dn-2/regions/{SECOND}-1",
    }
)
REMOVE = RemoveCopy.model_validate(
    {
        **OF_TABLE,
        "region_id": SECOND,
        "node": "dn-2",
        "root": f"/disks/dn-2/regions/{SECOND}-1",
    }
)

COPIED_SCENARIOS = (
    *ALTERING_SCENARIOS,
    *CREATING_SCENARIOS,
    *CREATING_ELSEWHERE_SCENARIOS,
    *TRUNCATING_SCENARIOS,
    *LEAVING_SCENARIOS,
    *MOVING_SCENARIOS,
    *DRAINING_SCENARIOS,
    *MOVING_DROPPED_SCENARIOS,
    *SWITCHING_SCENARIOS,
    Scenario(
        "add_copy",
        "add_copy",
        ADD,
        with_copied_table,
        {FULL: added},
        awaits_heartbeats=True,
        undone=unchanged,
    ),
    Scenario(
        "add_copy, in place of a lost learner",
        "add_copy",
        REMAKE,
        with_copied_table,
        {FULL: made_anew},
        awaits_heartbeats=True,
        undone=lost_learner_gone,
    ),
    Scenario(
        "add_copy, cancelled",
        "add_copy",
        ADD,
        with_copied_table_and_refusing_node,
        {ProcedureOutcome.CANCELLED: unchanged, ProcedureOutcome.ROLLED_BACK: unchanged},
        cancel_after_ms=1_000,
        awaits_heartbeats=True,
        undone=unchanged,
    ),
    Scenario(
        "remove_copy",
        "remove_copy",
        REMOVE,
        with_copied_table,
        {FULL: removed},
        awaits_heartbeats=True,
        undone=unchanged,
    ),
    Scenario(
        "change_copies, join",
        "change_copies",
        JOIN,
        with_copied_table,
        {FULL: joined},
        awaits_heartbeats=True,
    ),
    Scenario(
        "failover_table, with copies",
        "failover_table",
        MOVED,
        with_copied_table_and_dead_node,
        {FULL: promoted},
        awaits_heartbeats=True,
    ),
    Scenario(
        "failover_table, with copies, the next leader starts again",
        "failover_table",
        MOVED,
        with_copied_table_and_restarting_node,
        {FULL: promoted_again},
        awaits_heartbeats=True,
    ),
    Scenario(
        "drop_table, with copies",
        "drop_table",
        DropTable.model_validate(NAMED),
        with_copied_table,
        {FULL: dropped_with_copies},
        client={"if_version": 1, "table_id": TABLE},
        undone=still_there,
    ),
    Scenario(
        "purge_table, with copies",
        "purge_table",
        PurgeTable.model_validate({**NAMED, "dropped_by": "test"}),
        with_dropped_copied_table,
        {FULL: purged_with_copies},
    ),
    Scenario(
        "undrop_table, with copies",
        "undrop_table",
        UndropTable(
            table_id=TABLE,
            catalog="main",
            schema_name="public",
            old_name="t",
            new_name="t",
        ),
        with_dropped_copied_table,
        {FULL: undropped_with_copies},
        awaits_heartbeats=True,
    ),
)
