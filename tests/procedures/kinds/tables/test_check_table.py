"""A table's rows and entries are held against its schema; whoever asks is told what is wrong."""

from keys.model.records import ProcedureOutcome
from keys.store.kv import Compare
from procedures.engine.control import Control
from procedures.engine.sizes import ROOM_BYTES
from procedures.kinds.tables.check_table import FAULTS_KEPT, CheckTable
from procedures.steps.job_pace import LOOK_MS
from procedures.steps.validation import REGIONS_AT_ONCE
from tests.fakes.cluster import Cluster
from tests.procedures.harness.checking import CHECKS
from tests.procedures.harness.constraints import no_marks
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.filling import Filling, filling
from tests.procedures.harness.online import indexed_info, with_index
from tests.procedures.harness.tables import NODES, put_schema, put_table, reserve_ids, table_info

WIDE = REGIONS_AT_ONCE + 1
MANY = FAULTS_KEPT + 10
LONG = 7_000  # characters of a value that an index entry can hold


def test_given_an_index_that_was_filled_when_checked_then_the_table_is_clean() -> None:
    async def scenario(at: Filling) -> None:
        await at.submit()
        await at.go_on()
        await at.submit("check_table", CHECKS)

        ended = await at.go_on()

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert ended.result == {
            "table_id": TABLE,
            "name": "main.public.t",
            "rows": 6,
            "entries": 6,
            "clean": True,
            "totals": {},
            "faults": [],
        }
        assert at.judge(ProcedureOutcome.SUCCEEDED, no_marks) == []

    filling(scenario)


def test_given_an_entry_of_no_row_and_one_of_no_index_when_checked_then_both_are_named() -> None:
    async def scenario(at: Filling) -> None:
        (folder,) = (one for one in at.cluster.plane.storage.folders.values() if one.files)
        (entry,) = planted = frozenset({"00 9"})
        folder.files.clear()
        folder.files["file"] = frozenset({"5=x"})
        folder.entries = {1: planted, 7: planted}
        await at.submit("check_table", CHECKS)

        ended = await at.go_on()

        assert ended.result is not None
        assert ended.result["totals"] == {
            "entry-unowned": 1,
            "entry-wrong": 1,
            "entry-missing": 1,
        }
        unowned, wrong, missing = ended.result["faults"]
        assert (unowned["element"], unowned["file"], unowned["count"]) == ("7", "entries-7", 1)
        assert (wrong["element"], wrong["keys"]) == ("by_note", [{"id": 9}])
        assert (missing["keys"], missing["values"]) == ([{"id": 5}], {"note": "x", "id": ord("x")})
        assert wrong["entry_key"] == entry.split(" ")[0]

    filling(scenario, with_index)


def test_given_more_faults_than_are_kept_when_checked_then_all_are_counted() -> None:
    async def scenario(at: Filling) -> None:
        for folder in at.cluster.plane.storage.folders.values():
            folder.files.clear()
            folder.files["file"] = frozenset(str(number) for number in range(1, MANY + 1))
        await at.submit("check_table", CHECKS)

        ended = await at.go_on()

        assert ended.result is not None
        assert ended.result["totals"]["entry-missing"] >= MANY
        assert len(ended.result["faults"]) == FAULTS_KEPT

    filling(scenario, with_index)


async def with_wide_index(cluster: Cluster, fence: Compare) -> None:
    """More regions than one round has; none of their rows has an entry."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    partition = table_info(TABLE, "t", WIDE).partition
    info = indexed_info().model_copy(update={"partition": partition})
    await put_table(cluster, fence, info, tuple(NODES[n % len(NODES)] for n in range(WIDE)))


def test_given_a_round_that_is_over_when_another_leads_then_it_is_not_looked_at_again() -> None:
    async def scenario(at: Filling) -> None:
        at.jobs.checks_free = REGIONS_AT_ONCE
        await at.submit("check_table", CHECKS)
        await at.settle()
        first = CheckTable.model_validate(at.entry().held.record.state)

        at.cluster.loop.kill(at.cluster.leader.node)
        await at.cluster.started("meta-2")
        ended = await at.go_on()

        assert first.looked == ((0, REGIONS_AT_ONCE - 1),)
        assert ended.result is not None
        assert ended.result["rows"] == sum(len(at.cluster.plane.rows(one) or ()) for one in ids(at))
        assert ended.result["totals"] == {"entry-missing": ended.result["rows"]}
        assert at.judge(ProcedureOutcome.SUCCEEDED, no_marks) == []

    filling(scenario, with_wide_index)


def test_given_a_check_that_reads_when_cancelled_then_no_mark_is_left() -> None:
    async def scenario(at: Filling) -> None:
        await at.submit("check_table", CHECKS)
        await at.settle()
        await at.control(Control.CANCEL)

        ended = await at.go_on()

        assert ended.outcome is ProcedureOutcome.CANCELLED
        assert at.judge(ProcedureOutcome.CANCELLED, no_marks) == []

    filling(scenario, with_wide_index)


def test_given_a_check_that_reads_when_throttled_then_its_jobs_are_told_and_so_are_the_next() -> (
    None
):
    async def scenario(at: Filling) -> None:
        await at.submit("check_table", CHECKS)
        await at.settle()
        await at.throttle(500)
        await at.cluster.clock.sleep_ms(2 * LOOK_MS)
        told = list(at.jobs.throttled)
        limit = at.entry().live.pace.rows_per_s

        ended = await at.go_on()

        assert {rate for _, rate in told} == {500}
        assert len({job for job, _ in told}) == REGIONS_AT_ONCE
        assert limit == 500
        assert [job.rows_per_s for job in at.jobs.checked[REGIONS_AT_ONCE:]] == [500]
        assert ended.outcome is ProcedureOutcome.SUCCEEDED

    filling(scenario, with_wide_index)


def test_given_faults_of_rows_with_long_keys_when_checked_then_the_record_stays_small() -> None:
    async def scenario(at: Filling) -> None:
        for folder in at.cluster.plane.storage.folders.values():
            folder.files.clear()
            folder.files["file"] = frozenset(f"{n}={'x' * LONG}" for n in range(1, 90))
        await at.submit("check_table", CHECKS)

        ended = await at.go_on()

        assert ended.result is not None
        assert ended.result["totals"]["entry-missing"] >= 89
        found = ended.result["faults"]
        assert 0 < len(found) < FAULTS_KEPT
        assert len(ended.model_dump_json()) < ROOM_BYTES // 2
        assert f"({LONG} characters)" in found[-1]["values"]["note"]

    filling(scenario, with_index)


def ids(at: Filling) -> list[str]:
    return [region for node in at.cluster.plane.nodes.values() for region in node.serving]
