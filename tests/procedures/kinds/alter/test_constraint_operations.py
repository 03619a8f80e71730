"""Constraints that come and go: validated in every region, undone with a list of violations."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from keys.model.records import ProcedureHistory, ProcedureOutcome
from keys.model.tables import TableInfo
from keys.store.kv import Compare
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.jobs import ValidateJob, ValidateResult
from procedures.elements.element_targets import (
    back,
    moved,
    past_no_return,
    to_end,
    to_last_undoable,
)
from procedures.engine.control import Command, Control
from procedures.kinds.alter.alter_operations import (
    AddColumnOperation,
    DropColumnOperation,
    Operation,
    drafted,
)
from procedures.kinds.alter.constraint_operations import (
    AddCheck,
    DropConstraintOperation,
    DropNotNull,
    SetNotNull,
    ValidateConstraintOperation,
)
from procedures.ports import Progress
from procedures.steps.job_pace import LOOK_MS
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.plane import FakeJobs
from tests.procedures.harness.constraints import (
    CHECK,
    NULLS,
    constrained,
    no_marks,
    not_constrained,
    with_nulls,
)
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.online import with_rows
from tests.procedures.harness.tables import table_info
from tests.procedures.kinds.alter.moved import until_end
from tests.procedures.kinds.alter.online import HOLDER, Change
from tests.sim.loop import SimLoop, run

FOR_EVER = 1_000_000
REQUIRED = SetNotNull(name="note")
LATER = AddCheck(name="noted", expression="note is not null", not_valid=True)


def checked(*operations: Operation) -> TableInfo:
    """Table t after them, all of them over."""
    info = table_info(TABLE, "t", 1)
    draft = drafted(info, operations)
    undoable = until_end(draft.entered, draft.moves, to_last_undoable)
    over = moved(undoable[-1], draft.moves, past_no_return)
    return until_end(over, draft.moves, to_end)[-1]


@pytest.mark.parametrize(
    ("operations", "pointer", "code"),
    [
        ((SetNotNull(name="no"),), "/operations/0/name", "invalid-schema-change"),
        (
            (AddColumnOperation(name="x", type="int8"), SetNotNull(name="x")),
            "/operations/1/name",
            "invalid-schema-change",
        ),
        ((REQUIRED, DropNotNull(name="note")), "/operations/1/name", "invalid-schema-change"),
        ((SetNotNull(name="note", not_valid=True), REQUIRED), "/operations/1/name", "already"),
        ((AddCheck(name="c", expression="id >"),), "/operations/0/check", "invalid-request"),
        ((AddCheck(name="c", expression="size > 1"),), "/operations/0/check", "invalid-request"),
        ((CHECK, CHECK), "/operations/1/name", "already-exists"),
        (
            (AddColumnOperation(name="x", type="int8"), AddCheck(name="c", expression="x > 1")),
            "/operations/1/check",
            "invalid-schema-change",
        ),
        ((CHECK, DropColumnOperation(name="note")), "/operations/1/name", "invalid-schema-change"),
        ((DropConstraintOperation(name="no"),), None, "not-found"),
        ((CHECK, DropConstraintOperation(name="positive")), None, "not-found"),
    ],
)
def test_given_constraints_that_cannot_be_then_the_place_is_named(
    operations: tuple[Operation, ...], pointer: str | None, code: str
) -> None:
    with pytest.raises(MetaError) as refused:
        drafted(table_info(TABLE, "t", 1), operations)

    assert refused.value.facts.get("pointer") == pointer
    assert code in str(refused.value)


def test_given_a_name_that_comes_close_when_there_is_no_such_constraint_then_it_is_suggested() -> (
    None
):
    public = checked(LATER)
    near = public.constraints[0].name[:-1]

    with pytest.raises(MetaError) as refused:
        drafted(public, (DropConstraintOperation(name=near),))

    assert refused.value.facts["did_you_mean"] == public.constraints[0].name


def test_given_a_check_when_it_comes_and_goes_then_rows_are_known_to_satisfy_it_or_not() -> None:
    added = drafted(table_info(TABLE, "t", 1), (CHECK,))
    coming = moved(added.entered, added.moves, to_last_undoable)
    public = moved(coming, added.moves, past_no_return)
    dropped = drafted(public, (DropConstraintOperation(name="positive"),))
    going = moved(dropped.entered, dropped.moves, to_last_undoable)

    shown = [(one.constraints[0].state, one.constraints[0].holds) for one in (coming, public)]
    assert shown == [("write-only", False), ("public", True)]
    assert [(one.state, one.holds) for one in going.constraints] == [("write-only", True)]
    assert moved(going, dropped.moves, back) == public
    assert moved(going, dropped.moves, past_no_return).constraints == ()


@pytest.mark.parametrize(
    "operation", [ValidateConstraintOperation(name="noted"), DropConstraintOperation(name="noted")]
)
def test_given_one_that_is_not_valid_when_its_change_goes_back_then_it_stays(
    operation: Operation,
) -> None:
    left = checked(LATER)
    draft = drafted(left, (operation,))

    undoable = moved(draft.entered, draft.moves, to_last_undoable)

    assert [(one.state, one.holds) for one in left.constraints] == [("write-only", False)]
    assert undoable == left == moved(undoable, draft.moves, back)


@pytest.mark.parametrize("first", ["constraint", "column"])
def test_given_a_constraint_and_its_column_when_dropped_then_the_column_goes_behind_it(
    first: str,
) -> None:
    noted = checked(AddCheck(name="noted", expression="note is not null"))
    check, column = DropConstraintOperation(name="noted"), DropColumnOperation(name="note")
    draft = drafted(noted, (check, column) if first == "constraint" else (column, check))

    undoable = until_end(draft.entered, draft.moves, to_last_undoable)
    over = moved(undoable[-1], draft.moves, past_no_return)
    ways = until_end(over, draft.moves, to_end)

    def note(info: TableInfo) -> str:
        return next((one.state.value for one in info.columns if one.name == "note"), "absent")

    checks = [[one.state.value for one in info.constraints] for info in (*undoable, over)]
    assert checks == [["public"], ["write-only"], []]
    assert {note(info) for info in (*undoable, over)} == {"public"}, "checks know its value"
    assert [note(info) for info in ways] == ["public", "write-only", "delete-only", "absent"]
    assert moved(undoable[-1], draft.moves, back) == noted


# ---- over rows


def over_rows(
    scenario: Callable[[Change], Awaitable[None]],
    given: Callable[[Cluster, Compare], Awaitable[None]] = with_nulls,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop)
        fence = await cluster.bootstrap()
        await given(cluster, fence)
        await cluster.started()
        await scenario(Change(cluster, fence))

    run(main, 1)


def keys_of(ended: ProcedureHistory) -> list[int]:
    """Returns the keys of rows that violate it."""
    error = ended.last.error
    assert error is not None
    assert (error.code, error.facts["total"]) == ("check-violation", len(NULLS))
    return [one["key"]["id"] for one in error.facts["violations"]]


@pytest.mark.parametrize("operation", [REQUIRED, AddCheck(name="c", expression="note is not null")])
@pytest.mark.case("online 52", "online 54")
def test_given_rows_that_break_it_when_asked_for_then_undone_and_they_are_listed(
    operation: Operation,
) -> None:
    async def scenario(at: Change) -> None:
        change = await at.submit(operation)

        ended = await change.end()

        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        assert keys_of(ended) == [ord(key) for key in NULLS]
        assert at.judge(ProcedureOutcome.ROLLED_BACK, not_constrained) == []

    over_rows(scenario)


def test_given_rows_that_break_it_when_not_valid_then_it_stays_and_holds_once_they_are_mended() -> (
    None
):
    async def scenario(at: Change) -> None:
        ended = await (await at.submit(LATER)).end()
        left = (await at.info()).constraints
        refused = await (await at.submit(ValidateConstraintOperation(name="noted"))).end()
        still = (await at.info()).constraints
        for folder in at.cluster.plane.storage.folders.values():
            folder.files["file"] = frozenset({"a=here"})
        held = await (await at.submit(ValidateConstraintOperation(name="noted"))).end()

        assert [one.outcome for one in (ended, refused, held)] == [
            ProcedureOutcome.SUCCEEDED,
            ProcedureOutcome.ROLLED_BACK,
            ProcedureOutcome.SUCCEEDED,
        ]
        assert keys_of(refused) == [ord(key) for key in NULLS]
        assert still == left
        (check,) = (await at.info()).constraints
        assert (check.state, check.holds) == ("public", True)
        assert at.judge(ProcedureOutcome.SUCCEEDED, no_marks) == []

    over_rows(scenario)


@pytest.mark.parametrize("step", ["advance", "validate"])
@pytest.mark.case("online 67")
def test_given_a_constraint_on_its_way_when_cancelled_then_it_is_as_if_never_asked(
    step: str,
) -> None:
    """While a holder is waited for, and while rows are looked at."""

    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1 if step == "advance" else 2)
        at.cluster.jobs.failures = FOR_EVER
        change = await at.submit(REQUIRED, CHECK)
        await at.settle()
        seen, where = await at.info(), change.entry().held.record.step

        await change.control(Control.CANCEL)
        at.cluster.holders.lets_go(HOLDER, TABLE)

        assert (await change.end()).outcome is ProcedureOutcome.CANCELLED
        assert ([one.state for one in seen.constraints], where) == (["write-only"] * 2, step)
        assert at.judge(ProcedureOutcome.CANCELLED, not_constrained) == []

    over_rows(scenario)


@pytest.mark.parametrize("step", ["advance", "validate"])
@pytest.mark.case("online 69")
def test_given_a_constraint_on_its_way_when_paused_and_led_on_and_resumed_then_it_holds(
    step: str,
) -> None:
    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1 if step == "advance" else 2)
        at.cluster.jobs.failures = FOR_EVER
        change = await at.submit(REQUIRED, CHECK)
        await at.settle()

        await change.control(Control.PAUSE)
        at.cluster.holders.lets_go(HOLDER, TABLE)
        at.cluster.jobs.failures = 0
        at.cluster.loop.kill(at.cluster.leader.node)
        await at.cluster.started("meta-2")
        await at.settle()
        paused = await at.info()
        await change.control(Control.RESUME)

        assert (await change.end()).outcome is ProcedureOutcome.SUCCEEDED
        assert paused.schema_version == 2
        assert at.judge(ProcedureOutcome.SUCCEEDED, constrained) == []

    over_rows(scenario, with_rows)


@pytest.mark.case("online 55")
def test_given_a_check_when_it_is_dropped_then_it_holds_until_nobody_relies_on_it() -> None:
    async def scenario(at: Change) -> None:
        await (await at.submit(CHECK)).end()
        public = (await at.info()).schema_version
        at.cluster.holders.uses(HOLDER, TABLE, public)
        drop = await at.submit(DropConstraintOperation(name=CHECK.name))
        await at.settle()
        between = await at.info()

        at.cluster.holders.lets_go(HOLDER, TABLE)

        assert (await drop.end()).outcome is ProcedureOutcome.SUCCEEDED
        assert [one.state for one in between.constraints] == ["write-only"]
        assert (await at.info()).constraints == ()

    over_rows(scenario, with_rows)


def test_given_a_constraint_and_its_column_when_dropped_in_one_alter_then_both_are_gone() -> None:
    async def scenario(at: Change) -> None:
        await (await at.submit(CHECK)).end()

        drop = await at.submit(
            DropColumnOperation(name="note"), DropConstraintOperation(name=CHECK.name)
        )

        ended = await drop.end()
        assert ended.outcome is ProcedureOutcome.SUCCEEDED, ended.last.error
        info = await at.info()
        assert ([one.name for one in info.columns], info.constraints) == (["id"], ())
        shifts = [
            (shift.name, shift.after.value)
            for one in ended.last.transitions
            for shift in one.shifts
        ]
        assert shifts == [
            (CHECK.name, "write-only"),
            (CHECK.name, "absent"),
            ("note", "write-only"),
            ("note", "delete-only"),
            ("note", "absent"),
        ]
        assert at.judge(ProcedureOutcome.SUCCEEDED, no_marks) == []

    over_rows(scenario, with_rows)


@dataclass
class HeldChecks(FakeJobs):
    """Looks at rows that go on when they may."""

    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[ValidateJob] = field(default_factory=list)

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        self.asked.append(job)
        await self.may_go_on.wait()
        return await super().validate(job, progress=progress)


async def with_held_checks(cluster: Cluster, fence: Compare) -> None:
    await with_rows(cluster, fence)
    cluster.jobs = HeldChecks(cluster.plane)


def test_given_rows_that_are_looked_at_when_throttled_then_their_jobs_are_told() -> None:
    async def scenario(at: Change) -> None:
        jobs = at.cluster.jobs
        assert isinstance(jobs, HeldChecks)
        change = await at.submit(CHECK)
        await at.settle()
        command = Command(Control.THROTTLE, by="ops", rows_per_s=500)
        await at.cluster.leader.manager.control(change.procedure, command)
        await at.cluster.clock.sleep_ms(2 * LOOK_MS)

        told = list(jobs.throttled)
        jobs.may_go_on.set()

        assert told == [(job.job_id, 500) for job in jobs.asked]
        assert told
        assert (await change.end()).outcome is ProcedureOutcome.SUCCEEDED

    over_rows(scenario, with_held_checks)
