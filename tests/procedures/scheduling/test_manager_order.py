"""A failover and a drop that waits for a schema change: who goes first, now and at a new leader."""

from procedures.engine.control import State
from procedures.locking.locks import route_key, table_key
from tests.procedures.harness.leader_office import Office, office

TABLE, ROUTE = table_key(7), route_key(7)


async def with_a_drop_that_waits(at: Office) -> None:
    await at.submit("alter", TABLE)
    await at.submit("drop", TABLE, ROUTE)


def test_given_a_drop_that_waits_for_an_alter_when_a_failover_comes_then_it_runs_at_once() -> None:
    async def scenario(at: Office) -> None:
        await with_a_drop_that_waits(at)
        await at.submit("failover", ROUTE)
        await at.settle()
        assert at.states("alter", "drop", "failover") == ["running", "waiting", "running"]

        at.let("alter", "alter again")
        await at.end("alter")
        await at.submit("later", ROUTE)
        await at.settle()

        assert at.states("drop", "failover", "later") == ["waiting", "running", "waiting"]
        at.let("failover", "failover again")
        await at.end("failover")
        await at.settle()
        assert at.states("drop", "later") == ["running", "waiting"]

    office(scenario)


def test_given_a_failover_that_overtook_when_the_leader_dies_then_it_still_goes_first() -> None:
    async def scenario(at: Office) -> None:
        await with_a_drop_that_waits(at)
        await at.submit("failover", ROUTE)
        at.let("alter", "alter again", "failover")
        await at.end("alter")

        await at.next_leader()
        await at.settle()

        assert at.states("drop", "failover") == ["waiting", "running"]
        assert "drop" not in at.gates.ran

    office(scenario)


def test_given_a_drop_and_a_failover_at_once_then_one_of_them_runs_and_both_end() -> None:
    """The drop may be on its way to the store when the failover comes, and the other way round."""

    async def scenario(at: Office) -> None:
        await at.at_once(("drop", TABLE, ROUTE), ("failover", ROUTE), ("again", TABLE, ROUTE))
        await at.settle()

        assert at.states("drop", "failover", "again").count(State.RUNNING) == 1
        for name in ("drop", "failover", "again"):
            at.let(name, f"{name} again")
        for name in ("drop", "failover", "again"):
            await at.end(name)

    office(scenario)
