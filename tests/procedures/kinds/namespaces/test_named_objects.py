"""Changes of a placement compare the version that their client saw, under the locks."""

from collections.abc import Mapping

import pytest

from keys.model.placing.placements import PlacementInfo, PlacementKey
from keys.model.records import ProcedureOutcome
from keys.value import decode
from procedures.commands.placement_commands import PlacementChanges
from procedures.kinds.namespaces.placements import AlterPlacement, DropPlacement, RenamePlacement
from procedures.machine import ProcedureState
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.placing.scenarios import FAST, with_both
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

NAMED = {"name": FAST.name, "placement_id": FAST.placement_id}
CHANGES: Mapping[str, ProcedureState] = {
    "alter_placement": AlterPlacement(**NAMED, changes=PlacementChanges(comment="c")),
    "rename_placement": RenamePlacement(**NAMED, new_name="slow"),
    "drop_placement": DropPlacement(**NAMED),
}


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize(
    ("if_version", "code"), [(None, None), (FAST.version, None), (7, "version-mismatch")]
)
def test_given_a_placement_when_changed_then_the_version_of_the_client_is_compared(
    kind: str, if_version: int | None, code: str | None
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_both, {})
        before = history_of(cluster.kv._store.log_from(1))

        history = await finish(cluster, kind, CHANGES[kind], {"if_version": if_version})

        after = history_of(cluster.kv._store.log_from(1))
        error = history.last.error
        assert (error and error.code) == code
        assert (history.outcome is ProcedureOutcome.SUCCEEDED) == (code is None)
        assert (after.versions == before.versions) == (code is not None)

    run(main, 1)


def test_given_a_placement_that_is_gone_when_a_version_was_required_then_it_is_no_miss() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_both, {})
        state = DropPlacement(name="x", placement_id=7)

        missed = await finish(cluster, "drop_placement", state, {"if_exists": True})
        required = {"if_exists": True, "if_version": 1}
        history = await finish(cluster, "drop_placement", state, required)

        assert missed.outcome is ProcedureOutcome.SUCCEEDED
        assert history.last.error is not None
        assert history.last.error.code == "not-found"

    run(main, 1)


def test_given_a_stored_placement_without_a_version_then_it_is_read_as_the_first() -> None:
    stored = FAST.model_dump_json(exclude={"version"}).encode()

    info = decode(PlacementInfo, stored, key=str(PlacementKey("fast")))

    assert info.version == 1
