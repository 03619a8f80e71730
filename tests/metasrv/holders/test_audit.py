"""A version that was given up and is used again: found, counted, and the schema stands still."""

import pytest

from keys.model.records import ProcedureOutcome
from metasrv.holders.audit import SchemaAudit, versions_in_use
from metasrv_base.errors import Unavailable
from tests.metasrv.holders.leaders import TABLE, Office
from tests.metasrv.holders.samples import pin
from tests.procedures.kinds.alter.online import HOLDER, REQUIRED, Change, online
from tests.sim.loop import SimLoop, run

OLD, NEW = 4, 5
FLOORS = {TABLE: NEW}


@pytest.mark.parametrize(
    ("before", "now", "is_wrong"),
    [
        (None, OLD, True),
        (NEW, OLD, True),
        (OLD, OLD, False),
        (OLD - 1, OLD, False),
        (None, NEW, False),
        (NEW, NEW, False),
    ],
    ids=str,
)
def test_given_a_pin_when_told_then_it_is_wrong_if_it_is_new_and_below_the_floor(
    before: int | None, now: int, is_wrong: bool
) -> None:
    audit = SchemaAudit()
    known = {} if before is None else {TABLE: pin(TABLE, before)}

    found = audit.heard("fe-1", known, [pin(TABLE, now, "t-9")], FLOORS.get)

    assert [(one.holder, one.schema_version, one.floor) for one in found] == (
        [("fe-1", now, NEW)] if is_wrong else []
    )
    assert (audit.checks, audit.violation_count, len(audit.standing())) == (1, is_wrong, is_wrong)


def test_given_a_violation_then_that_table_stands_still_until_its_holder_is_gone() -> None:
    audit = SchemaAudit()
    audit.heard("fe-1", {}, [pin(TABLE, OLD, "t-9")], FLOORS.get)

    audit.must_hold(TABLE + 1)
    with pytest.raises(Unavailable, match="schema-audit-failed") as told:
        audit.must_hold(TABLE)
    audit.gone("fe-2")
    with pytest.raises(Unavailable):
        audit.must_hold(TABLE)
    audit.gone("fe-1")

    audit.must_hold(TABLE)
    assert told.value.facts == {
        "holder": "fe-1",
        "transaction": "t-9",
        "schema_version": OLD,
        "floor": NEW,
    }
    assert audit.violation_count == 1


def test_given_pins_of_holders_then_the_versions_of_each_table_are_counted_once() -> None:
    pins = [[pin(TABLE, 3), pin(9, 1)], [pin(TABLE, 3)], [pin(TABLE, 4)]]

    assert dict(versions_in_use(pins)) == {TABLE: 2, 9: 1}


def test_given_a_holder_that_takes_an_old_version_up_again_then_it_is_found_until_it_goes() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.publish(1)
        await one.register("fe-1", "i-1")
        one.acknowledge("fe-1", 1)
        await one.publish(2)
        one.acknowledge("fe-1", 2, pin(TABLE, 0, "t-8"))
        kept = one.sync.audit.standing()

        one.acknowledge("fe-1", 3, pin(TABLE, 0, "t-8"))
        again = one.sync.audit.violation_count
        await one.sync.sign_off("fe-1", "i-1")

        assert [(held.holder, held.schema_version) for held in kept] == [("fe-1", 0)]
        assert again == 1
        one.sync.must_be_sound(TABLE)

    run(main, 1)


def test_given_a_late_copy_of_what_a_holder_said_when_heard_then_nothing_is_wrong() -> None:
    """It was true when it was said."""

    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.publish(1)
        await one.register("fe-1", "i-1")
        one.acknowledge("fe-1", 1, pin(TABLE, 0, "t-8"))
        one.acknowledge("fe-1", 2)
        await one.publish(2)

        one.acknowledge("fe-1", 1, pin(TABLE, 0, "t-8"))

        assert one.sync.audit.violation_count == 0

    run(main, 1)


def test_given_a_new_leader_when_a_holder_tells_of_old_pins_first_then_nothing_is_wrong() -> None:
    """This leader does not know which pins its predecessor asked to give up."""

    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        old = await office.elect("ms-1")
        await old.publish(1)
        await old.register("fe-1", "i-1")
        loop.kill("ms-1")
        new = await office.elect("ms-2")

        new.acknowledge("fe-1", 1, pin(TABLE, 0, "t-8"))

        assert new.sync.audit.violation_count == 0

    run(main, 1)


def test_given_a_table_that_is_not_sound_when_altered_then_it_waits_and_goes_on_afterwards() -> (
    None
):
    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, 1024, 1)
        change = await at.submit(REQUIRED)
        await at.settle()
        at.cluster.holders.unsound.add(1024)
        at.cluster.holders.lets_go(HOLDER, 1024)
        await at.settle()
        stopped, error = await at.info(), change.entry().live.last_error

        at.cluster.holders.unsound.clear()

        assert (stopped.schema_version, stopped.schema_floor) == (2, 1)
        assert error == "schema-audit-failed"
        assert (await change.end()).outcome is ProcedureOutcome.SUCCEEDED

    online(scenario)
