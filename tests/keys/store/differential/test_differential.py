"""MemoryKv does what a real etcd does: the same operations, the same answers, one by one.

Whatever else is shown on MemoryKv holds on etcd only as far as this does. `make search` looks for
longer (tests/conftest.py, the profile `search`).
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from hypothesis import given

from keys.store.etcd import EtcdKv
from keys.store.kv import Get, Put, Request
from keys.store.memory import MemoryKv
from tests.etcd.process import EtcdProcess
from tests.fakes.clock import FakeClock
from tests.keys.store.differential.operations import (
    Expect,
    Expected,
    Operation,
    Transact,
    sequences,
)
from tests.keys.store.differential.side import DEADLINE_MS, FIRST, Now, Side

pytestmark = pytest.mark.etcd

BEGIN = Request(writes=(Put(b"begin", b""),))
RARE = (
    "Transact done",
    "Transact refused",
    "Transact Conflict",
    "Read of the past",
    "Read Conflict",
    "Read Unavailable",
    "Watch delivered",
    "Watch Conflict",
    "Compact done",
    "Compact Unavailable",
    "Revoke done",
    "KeepAlive True",
    "KeepAlive False",
)
"""Each must come up in every run, or the run shows little."""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An etcd that nobody else writes to: its revisions are counted."""
    process = EtcdProcess(tmp_path_factory.mktemp("alone"))
    process.start()
    yield process.endpoint
    process.kill()


def test_given_any_operations_when_done_on_both_stores_then_their_answers_are_the_same(
    alone: str,
) -> None:
    seen, prefixes = Counter[str](), count(1)

    @given(sequences)
    def both(sequence: Sequence[Operation]) -> None:
        asyncio.run(_both(alone, b"/%d/" % next(prefixes), sequence, seen))

    both()

    print(dict(seen))
    assert [name for name in RARE if not seen[name]] == []


async def _both(
    endpoint: str, prefix: bytes, sequence: Sequence[Operation], seen: Counter[str]
) -> None:
    memory, real = MemoryKv(FakeClock()), await EtcdKv.connect([endpoint], prefix)
    try:
        assert (await memory.txn(BEGIN, deadline_ms=DEADLINE_MS)).revision == FIRST
        begun = (await real.txn(BEGIN, deadline_ms=DEADLINE_MS)).revision
        sides = Side(memory, 0), Side(real, begun - FIRST)
        for operation in sequence:
            now = await _now(memory, operation)
            ours, etcds = [await side.run(operation, now) for side in sides]
            assert ours == etcds, operation
            seen[_named(operation, ours)] += 1
        everything = Get(b"", b"\0")
        ours, etcds = [await side.look(everything) for side in sides]
        assert ours == etcds
    finally:
        await real.close()


async def _now(memory: MemoryKv, operation: Operation) -> Now:
    compares = operation.compares if isinstance(operation, Transact) else ()
    expected = [await _expected(memory, one) for one in compares]
    return Now(memory.revision, tuple(expected))


async def _expected(memory: MemoryKv, one: Expected) -> int:
    """The revision that the compare names; of a range, that of its first key."""
    found = (await memory.range(Get(one.key, one.end), deadline_ms=DEADLINE_MS)).items
    revision = found[0].mod_revision if found else 0
    match one.how:
        case Expect.ABSENT:
            return 0
        case Expect.AS_IT_IS:
            return revision
        case Expect.ONE_OLDER:
            return max(FIRST, revision - 1)
        case Expect.ONE_NEWER:
            return max(FIRST, revision + 1)


def _named(operation: Operation, outcome: object) -> str:
    """`outcome` in a word; of an error, its class."""
    name = type(operation).__name__
    match outcome:
        case (str(error), _):
            return f"{name} {error}"
        case (True, _, _):
            return f"{name} done"
        case (False, _, _):
            return f"{name} refused"
        case (list(), int(), bool()):
            return f"{name} of the past" if getattr(operation, "age", None) else f"{name} of now"
        case list():
            return f"{name} delivered"
        case None:
            return f"{name} done"
        case _:
            return f"{name} {outcome}"
