"""A batch of many commands holds the event loop for some of them at a time: operations are counted
in each turn of the loop, not time."""

from typing import Any

import pytest
from pydantic import ValidationError

from keys.catalog.catalog import Catalog
from keys.commit.entry_writes import ViewAfter
from metasrv.api.direct import COMMANDS_AT_ONCE, read_batch
from metasrv_base.concurrency.turns import at_once
from metasrv_base.wire.api.batches import BatchRequest
from procedures.engine import stager
from procedures.kinds.batch import batch as batch_kind
from procedures.kinds.batch import staged_members
from procedures.ports import TransactionLimits
from tests.metasrv.api.batch_requests import batch, create
from tests.metasrv.api.rig import TermLimits, leader
from tests.metasrv.api.turn_counts import TurnCounts

COMMANDS = 300
AT_ONCE = 128  # operations of one turn at most
IN_PARTS = TermLimits(one_transaction=TransactionLimits(record_bytes=1))


@pytest.fixture
async def counts(monkeypatch: pytest.MonkeyPatch) -> TurnCounts:
    found = TurnCounts(monkeypatch)
    found.count("locks", batch_kind, "locks_of")
    found.count("wide locks", staged_members, "locks_of")
    found.count("entries", ViewAfter, "apply")
    found.count("applied", Catalog, "_named")
    return found


async def make_many() -> None:
    async with leader(of_term=IN_PARTS) as one:
        done = await batch(one, *(create(f"t{number}") for number in range(COMMANDS)))

        assert (done.status_code, done.json()["applied"]) == (200, [True] * COMMANDS)


async def test_given_a_batch_in_parts_then_no_turn_has_more_than_some_of_its_operations(
    counts: TurnCounts,
) -> None:
    await make_many()

    assert 0 < counts.most["entries"] <= AT_ONCE
    assert 0 < counts.most["applied"] <= AT_ONCE
    assert max(counts.most.values()) <= AT_ONCE


async def test_given_locks_of_all_commands_in_one_turn_then_the_count_shows_it(
    counts: TurnCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stager, "ITEMS_AT_ONCE", 2 * COMMANDS)

    await make_many()

    assert counts.most["locks"] >= COMMANDS
    assert counts.most["wide locks"] >= COMMANDS


def test_given_many_commands_then_some_are_checked_in_a_turn_and_the_request_is_the_same() -> None:
    said = {"commands": [create(f"t{number}") for number in range(2 * COMMANDS_AT_ONCE + 1)]}

    assert sum(1 for _ in read_batch(said)) == 3
    assert at_once(read_batch(said)) == BatchRequest.model_validate(said)


@pytest.mark.parametrize(
    "said",
    [
        {"commands": [*(create(f"t{number}") for number in range(COMMANDS)), {"make": {}}]},
        {"commands": [create(f"t{number}") for number in range(COMMANDS)], "more": 1},
        {"commands": [{}] * 10_001},
        {"commands": []},
        {"commands": 7},
        [],
    ],
)
def test_given_a_wrong_request_then_it_is_refused_as_at_once(said: Any) -> None:
    with pytest.raises(ValidationError):
        BatchRequest.model_validate(said)
    with pytest.raises(ValidationError):
        at_once(read_batch(said))
