"""Cases 43-47, 54 and 62: what is poisoned, by whom, and until when."""

import json

import pytest

from keys.model.poison import PoisonKey
from keys.model.records import ProcedureOutcome
from metasrv_base.errors import Conflict, MetaError, Unavailable
from procedures.engine.control import Control
from procedures.engine.retry import UNDO_MS
from tests.procedures.harness.leader_office import Office, office

AWAY = Unavailable(what="node", name="dn-1")


def poisons(at: Office) -> list[bytes]:
    start, end = PoisonKey.under()
    return [key for key in at.cluster.stored() if start <= key < end]


async def poison(at: Office, name: str) -> None:
    """Its step fails for good, and so does its undo."""
    at.gates.trouble |= {name: Conflict("already-exists"), f"undo {name}": AWAY}
    await at.submit(name, "table:1")
    await at.cluster.clock.sleep_ms(2 * UNDO_MS)


@pytest.mark.case("greptime 44", "greptime 46")
@pytest.mark.parametrize("error", [Conflict("already-exists"), AWAY], ids=["for good", "retried"])
def test_given_a_failure_whose_undo_succeeds_then_nothing_is_poisoned(error: MetaError) -> None:
    async def scenario(at: Office) -> None:
        at.gates.trouble["a"] = error
        at.let("undo a")
        await at.submit("a", "table:1")
        await at.cluster.clock.sleep_ms(2 * at.cluster.kinds["gate"].deadline_ms)

        assert (await at.end("a")).outcome is ProcedureOutcome.ROLLED_BACK
        assert poisons(at) == []

    office(scenario)


@pytest.mark.case("greptime 45", "greptime 47", "greptime 54")
def test_given_an_undo_that_cannot_finish_then_its_own_resource_alone_stays_poisoned() -> None:
    async def scenario(at: Office) -> None:
        await poison(at, "a")
        at.let("b", "b again")
        await at.submit("b", "table:2")
        await at.end("b")
        await at.next_leader()
        await at.settle()

        assert at.state("a") == "poisoned"
        assert poisons(at) == [bytes(PoisonKey("gate:a"))]
        assert at.cluster.living() == [at.names["a"]]  # neither over nor forgotten

    office(scenario)


@pytest.mark.case("greptime 43", "greptime 62")
def test_given_a_poison_when_its_procedure_gets_over_it_then_it_is_gone_and_once() -> None:
    async def scenario(at: Office) -> None:
        await poison(at, "a")
        (key,) = poisons(at)
        names_it = at.names["a"] in json.dumps(json.loads(at.cluster.stored()[key]))
        del at.gates.trouble["undo a"]
        at.let("undo a")

        await at.control(Control.RETRY, "a")
        await at.end("a")
        with pytest.raises(Conflict) as twice:
            await at.control(Control.CLEAR, "a")

        assert names_it
        assert poisons(at) == []
        assert twice.value.code == "action-not-allowed"

    office(scenario)
