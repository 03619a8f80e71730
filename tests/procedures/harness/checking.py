"""Tables whose rows are held against their schema, and what must be true when that is over."""

from keys.model.tables import Constraint, ConstraintKind
from keys.store.kv import Compare
from procedures.kinds.tables.check_table import CheckTable
from tests.fakes.cluster import Cluster
from tests.procedures.harness.constraints import no_marks
from tests.procedures.harness.ends import TABLE, End, effects, is_true, serving
from tests.procedures.harness.online import indexed_info, with_index, with_info

CHECKS = CheckTable(catalog="main", schema_name="public", name="t", table_id=TABLE)
SENSELESS = Constraint(
    id=1, name="odd", kind=ConstraintKind.CHECK, columns=(2,), expression="c2 > 0"
)


async def with_index_without_entries(cluster: Cluster, fence: Compare) -> None:
    """Public, and its rows have none: a fault for each."""
    await with_index(cluster, fence)


async def with_senseless_constraint(cluster: Cluster, fence: Compare) -> None:
    """It compares text with a number."""
    info = indexed_info().model_copy(update={"constraints": (SENSELESS,)})
    await with_info(cluster, fence, info)


def faults_found(end: End) -> list[str]:
    """They are in the history, with the rows by their keys; and nothing else has changed."""
    (ended,) = end.agreement.family("__procedure_history").values()
    result = ended["result"] or {}
    rows = sum(len(end.cluster.plane.rows(one["region_id"]) or ()) for one in end.regions(TABLE))
    found = result["faults"]
    return [
        *nothing_left(end),
        *is_true(result["totals"] == {"entry-missing": rows}, f"{result}"),
        *is_true((result["clean"], result["rows"]) == (False, rows), f"{result}"),
        *is_true(len(found) == rows, f"{found}"),
        *is_true({one["element"] for one in found} == {"by_note"}, f"{found}"),
        *is_true(all("id" in key for one in found for key in one["keys"]), f"{found}"),
    ]


def nothing_left(end: End) -> list[str]:
    """No mark is open, and the table is as it was."""
    return [*effects(end), *serving(end, TABLE, epoch=1), *no_marks(end)]
