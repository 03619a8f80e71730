"""A thousand unfinished procedures, and the leader that finds them."""

from keys.kv import Request
from procedures.admission import Limits
from procedures.machine import Lane
from tests.procedures.office import Office, office

MANY = 1_000
PLACES = Limits(running_max={Lane.DDL: 64, Lane.REPAIR: 8}, queue_max=MANY)


def test_given_1000_queued_when_the_leader_dies_then_few_reads_find_all_and_all_end() -> None:
    async def scenario(at: Office) -> None:
        names = [f"p{number}" for number in range(MANY)]
        await at.at_once(*((name, f"table:{number // 4}") for number, name in enumerate(names)))
        before = [procedure for procedure, _ in at.cluster.leader.manager.living()]
        sent: list[Request] = []

        def count(request: Request) -> Request:
            sent.append(request)
            return request

        at.cluster.alter = count

        manager = (await at.next_leader()).manager

        assert [procedure for procedure, _ in manager.living()] == before
        assert len(before) == MANY
        assert len(sent) <= 8  # not one for each procedure
        for name in names:
            at.let(name, f"{name} again")
        for name in names:
            await at.end(name)

    office(scenario, PLACES)
