"""An import beside failovers, other leaders, and people who change their minds."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from keys.model.records import ProcedureOutcome
from keys.store.kv import Compare
from metasrv_base.errors import Conflict, Refused, Unavailable
from metasrv_base.wire.node.jobs import LoadJob, LoadJobResult
from procedures.engine.control import Control
from procedures.kinds.tables.import_table import REFUSALS_MAX
from procedures.ports import Progress
from procedures.steps.job_pace import LOOK_MS
from tests.fakes.cluster import Cluster
from tests.procedures.harness.filling import Filling, HeldJobs
from tests.procedures.harness.importing import (
    BROUGHT,
    IMPORTS,
    PATH,
    imported,
    never_imported,
    nothing_lies_about,
    rows_are_in,
    with_files,
    with_repeated_keys,
)
from tests.procedures.harness.online import with_index
from tests.procedures.harness.tables import NODES
from tests.sim.loop import SimLoop, run

PLACES = ("mark", "load", "prepare")
"""Where it can still be cancelled: before its versions are reserved, while its job reads, before
regions have looked at their files."""


@dataclass
class HeldLoads(HeldJobs):
    asked: list[LoadJob] = field(default_factory=list)

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        self.asked.append(job)
        progress(1, 2, "rows")
        await self.may_go_on.wait()
        return await super().load(job, progress=progress)


@dataclass
class Importing:
    """An import of three regions, and who steers it."""

    at: Filling
    loads: HeldLoads

    async def hold(self, place: str) -> None:
        """Submits, and returns when it stands there."""
        if place != "load":
            self.loads.may_go_on.set()
            self.at.refuse({"mark": "schema", "take": "ingest"}.get(place, place))
        await self.at.submit("import_table", IMPORTS)
        await self.at.settle()
        assert self.at.entry().held.record.step == place

    async def lead_elsewhere(self) -> None:
        self.at.cluster.loop.kill(self.at.cluster.leader.node)
        await self.at.cluster.started("meta-2")


def importing(
    scenario: Callable[[Importing], Awaitable[None]],
    given: Callable[[Cluster, Compare], Awaitable[None]] = with_files,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop)
        jobs = cluster.jobs = HeldLoads(cluster.plane)
        fence = await cluster.bootstrap()
        await given(cluster, fence)
        await cluster.started()
        await scenario(Importing(Filling(cluster, fence, jobs), jobs))

    run(main, 1)


@pytest.mark.parametrize("place", PLACES)
def test_given_an_import_on_its_way_when_cancelled_then_nothing_of_it_is_left(place: str) -> None:
    async def scenario(one: Importing) -> None:
        await one.hold(place)
        await one.at.control(Control.CANCEL)

        ended = await one.at.go_on()

        assert ended.outcome is ProcedureOutcome.CANCELLED
        assert one.at.judge(ProcedureOutcome.CANCELLED, never_imported) == []
        assert one.at.judge(ProcedureOutcome.CANCELLED, nothing_lies_about) == []

    importing(scenario)


def test_given_that_it_is_decided_when_cancelled_then_it_only_goes_forward() -> None:
    async def scenario(one: Importing) -> None:
        await one.hold("take")

        with pytest.raises(Conflict) as refusal:
            await one.at.control(Control.CANCEL)

        assert refusal.value.code == "past-point-of-no-return"
        assert (await one.at.go_on()).outcome is ProcedureOutcome.SUCCEEDED
        assert one.at.judge(ProcedureOutcome.SUCCEEDED, imported) == []

    importing(scenario)


@pytest.mark.parametrize("place", [*PLACES, "take"])
def test_given_another_leader_anywhere_when_it_goes_on_then_every_row_is_in_once(
    place: str,
) -> None:
    async def scenario(one: Importing) -> None:
        await one.hold(place)
        await one.lead_elsewhere()

        ended = await one.at.go_on()

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert one.at.judge(ProcedureOutcome.SUCCEEDED, imported) == []
        assert len({job.attempt for job in one.loads.asked}) == len(one.loads.asked)

    importing(scenario)


@pytest.mark.parametrize("place", ["prepare", "take"])
def test_given_a_failover_when_regions_look_elsewhere_then_those_alone_are_written_again(
    place: str,
) -> None:
    async def scenario(one: Importing) -> None:
        await one.hold(place)
        await one.at.fail_over()

        ended = await one.at.go_on()

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert one.at.judge(ProcedureOutcome.SUCCEEDED, rows_are_in) == []
        assert [len(job.regions) for job in one.loads.asked] == [3, 2]
        first, again = one.loads.asked
        assert first.input_digest is None
        assert again.input_digest is not None
        assert {region.number: region.version for region in again.regions}.items() <= {
            region.number: region.version for region in first.regions
        }.items(), "the version is the one that was reserved"

    importing(scenario)


def test_given_a_failover_while_the_job_writes_when_it_ends_then_every_row_is_in() -> None:
    async def scenario(one: Importing) -> None:
        await one.hold("load")
        await one.at.fail_over()

        assert (await one.at.go_on()).outcome is ProcedureOutcome.SUCCEEDED
        assert one.at.judge(ProcedureOutcome.SUCCEEDED, rows_are_in) == []

    importing(scenario)


def test_given_some_regions_that_have_their_rows_when_another_moves_then_it_is_given_its_own() -> (
    None
):
    async def scenario(one: Importing) -> None:
        one.loads.may_go_on.set()
        one.at.cluster.plane.nodes["dn-1"].refuses["ingest"] = Unavailable(what="test")
        await one.at.submit("import_table", IMPORTS)
        await one.at.settle()
        assert one.at.entry().held.record.state["taken"] == [[2, 2]]
        await one.at.fail_over()

        assert (await one.at.go_on()).outcome is ProcedureOutcome.SUCCEEDED
        assert one.at.judge(ProcedureOutcome.SUCCEEDED, rows_are_in) == []

    importing(scenario)


def test_given_other_files_by_now_when_a_region_is_written_again_then_nothing_is_imported() -> None:
    async def scenario(one: Importing) -> None:
        await one.hold("prepare")
        one.at.cluster.plane.brought[PATH] = BROUGHT | {"9=x"}
        await one.at.fail_over()

        ended = await one.at.go_on()

        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        assert ended.last.error is not None
        assert ended.last.error.code == "invalid-request"

    importing(scenario)


def test_given_other_files_when_it_is_decided_then_it_waits_until_they_are_back() -> None:
    async def scenario(one: Importing) -> None:
        await one.hold("take")
        one.at.cluster.plane.brought[PATH] = BROUGHT | {"9=x"}
        await one.at.fail_over()
        one.at.allow()
        await one.at.cluster.clock.sleep_ms(20_000)
        assert one.at.entry().held.record.step == "load"
        assert one.at.entry().live.last_error == "invalid-request"

        one.at.cluster.plane.brought[PATH] = BROUGHT

        assert (await one.at.go_on()).outcome is ProcedureOutcome.SUCCEEDED
        assert one.at.judge(ProcedureOutcome.SUCCEEDED, rows_are_in) == []

    importing(scenario)


def test_given_files_that_are_gone_when_regions_look_then_they_are_written_again() -> None:
    async def scenario(one: Importing) -> None:
        await one.hold("prepare")
        for folder in one.at.cluster.plane.storage.folders.values():
            folder.attempts.clear()

        assert (await one.at.go_on()).outcome is ProcedureOutcome.SUCCEEDED
        assert one.at.judge(ProcedureOutcome.SUCCEEDED, imported) == []
        assert len(one.loads.asked) == 2

    importing(scenario)


def test_given_regions_that_refuse_again_and_again_when_they_look_then_it_is_undone() -> None:
    async def scenario(one: Importing) -> None:
        one.loads.may_go_on.set()
        for node in NODES:
            wrong = Refused("invalid-request", reason="test")
            one.at.cluster.plane.nodes[node].refuses["prepare"] = wrong
        await one.at.submit("import_table", IMPORTS)
        await one.at.cluster.clock.sleep_ms(120_000)

        ended = await one.at.go_on()

        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        assert one.at.judge(ProcedureOutcome.ROLLED_BACK, never_imported) == []
        assert len(one.loads.asked) == REFUSALS_MAX + 1

    importing(scenario)


def test_given_refusals_behind_the_decision_when_regions_take_it_at_last_then_it_is_in() -> None:
    async def scenario(one: Importing) -> None:
        one.loads.may_go_on.set()
        for node in NODES:
            wrong = Refused("invalid-request", reason="test")
            one.at.cluster.plane.nodes[node].refuses["ingest"] = wrong
        await one.at.submit("import_table", IMPORTS)
        while len(one.loads.asked) < 2 * REFUSALS_MAX:
            await one.at.settle()

        ended = await one.at.go_on()

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert one.at.judge(ProcedureOutcome.SUCCEEDED, imported) == []

    importing(scenario)


def test_given_keys_that_stand_twice_when_imported_then_they_are_named_and_nothing_is_in() -> None:
    async def scenario(one: Importing) -> None:
        one.loads.may_go_on.set()
        await one.at.submit("import_table", IMPORTS)

        ended = await one.at.go_on()

        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        assert ended.last.error is not None
        assert ended.last.error.facts["repeated"] == [{"id": 1}]
        assert one.at.judge(ProcedureOutcome.ROLLED_BACK, nothing_lies_about) == []

    importing(scenario, with_repeated_keys)


def test_given_a_table_with_an_index_when_imported_then_it_is_refused_before_anything() -> None:
    async def scenario(one: Importing) -> None:
        await one.at.submit("import_table", IMPORTS)

        ended = await one.at.go_on()

        assert ended.outcome is ProcedureOutcome.FAILED
        assert ended.last.error is not None
        assert ended.last.error.code == "invalid-schema-change"
        assert one.at.cluster.plane.told == []

    importing(scenario, with_index)


def test_given_a_job_that_runs_when_throttled_then_it_is_told_and_so_is_the_next() -> None:
    async def scenario(one: Importing) -> None:
        await one.hold("load")
        await one.at.throttle(500)
        await one.at.cluster.clock.sleep_ms(2 * LOOK_MS)
        (job,) = one.loads.asked
        assert one.loads.throttled == [(job.job_id, 500)]
        assert one.at.entry().live.unit == "rows"

        await one.lead_elsewhere()
        await one.at.settle()

        assert one.loads.asked[-1].rows_per_s == 500
        assert (await one.at.go_on()).outcome is ProcedureOutcome.SUCCEEDED

    importing(scenario)


@pytest.mark.parametrize("place", ["load", "prepare"])
def test_given_an_import_when_paused_and_resumed_then_it_comes_to_the_same_end(place: str) -> None:
    async def scenario(one: Importing) -> None:
        await one.hold(place)
        await one.at.control(Control.PAUSE)
        await one.at.settle()
        one.at.allow()
        one.loads.may_go_on.set()
        await one.at.settle()
        assert one.at.entry().held.record.step == place
        await one.at.control(Control.RESUME)

        assert (await one.at.go_on()).outcome is ProcedureOutcome.SUCCEEDED
        assert one.at.judge(ProcedureOutcome.SUCCEEDED, imported) == []

    importing(scenario)
