"""Two tables that exchange names, when the one that was meant does not bear its name any more."""

import pytest

from keys.model.records import ProcedureOutcome
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import OTHER
from tests.procedures.harness.scenarios import with_two_tables
from tests.procedures.kinds.runs import HERE, begun, finish, rename
from tests.sim.loop import SimLoop, run


@pytest.mark.case("online 65")
@pytest.mark.parametrize(
    ("name", "other", "code"),
    [("nobody", OTHER, "table-not-found"), ("u", 1, "schema-conflict")],
)
def test_given_another_bearer_by_now_when_exchanged_then_refused_and_nothing_changed(
    name: str, other: int, code: str
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_tables, {})
        before = history_of(cluster.kv._store.log_from(1))

        history = await finish(cluster, "rename_table", rename(new_name=name, other_id=other), HERE)

        after = history_of(cluster.kv._store.log_from(1))
        assert history.last.error is not None
        assert (history.outcome, history.last.error.code) == (ProcedureOutcome.FAILED, code)
        assert (after.wrong, after.logged) == ([], before.logged)

    run(main, 1)
