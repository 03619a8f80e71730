"""Planted bugs of statements: the case that each is about finds it."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from dataplane.frontend.planning import entries
from dataplane.frontend.planning.cases import Cases
from dataplane.frontend.statements.writes import Writes
from dataplane.region.memory.statement_table import Remembered, StatementTable
from dataplane.region.memory.statements import StatementMemory
from metasrv_base.elements.graph import Act, Behaviour
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.batches import ABSENT
from tests.dataplane.frontend.planning import test_planning
from tests.dataplane.frontend.statements import test_statements
from tests.dataplane.frontend.statements import test_statements_times as test_statement_times
from tests.dataplane.region.statement_lives import SEEDS, live

CAUGHT = (AssertionError, MetaError, pytest.fail.Exception)
WHERE, SENT = Cases.where, Writes._sent
TIME_OF, FORGET = StatementMemory.time_of, StatementMemory.forget
ADD = StatementMemory.add
ROOM = 6


def whichever(
    removed: Sequence[tuple[bytes, bytes]], known: Mapping[bytes, entries.ReadEntry]
) -> Iterator[tuple[bytes, int]]:
    """A row that goes takes the entry with its values along, whichever row that leads to."""
    for key, _ in removed:
        yield key, known[key].version if key in known else ABSENT


def never_checked(
    self: Cases, does: Behaviour, touched: pa.BooleanArray, asked: Act
) -> pa.BooleanArray:
    """Nobody looks whether another row has the values."""
    return self._all(False) if asked is Act.CHECK else WHERE(self, does, touched, asked)


async def conflict_is_done(self: Writes, *asked: Any) -> Any:
    """A statement whose row was changed by another one meanwhile is told as done."""
    return await SENT(self, *asked) or Done()


class Done:
    version, repeated = 1, False


def nothing_remembered(self: StatementMemory, statement_id: str) -> None:
    """A repeated statement is a new one."""


def as_it_arrives(self: StatementMemory, sent_ms: int | None, now_ms: int) -> int:
    """The age of a statement is that of the copy, whenever its first sender made it."""
    return TIME_OF(self, None, now_ms)


def without_a_trace(self: StatementMemory, now_ms: int) -> bool:
    """Nobody knows up to which time statements were forgotten."""
    before = self.forgotten_ms
    found = FORGET(self, now_ms)
    self.forgotten_ms = before
    return found


def to_make_room(self: StatementMemory, statement_id: str, statement: Remembered) -> None:
    """The oldest statements are forgotten when there are many, however young they are."""
    ADD(self, statement_id, statement)
    if len(self) > ROOM:
        self.tables = self.tables[1:] or (StatementTable(),)


async def clocks_that_leap() -> None:
    for seed in range(SEEDS):
        live(seed, is_wild=True)


async def held_up_frontend() -> None:
    await test_statement_times.test_given_a_frontend_that_stood_still_then_its_statement_is_refused(
        named=True
    )


async def rivals_of_before() -> None:
    test_planning.test_given_two_rows_of_before_with_one_value_when_one_goes_then_the_others_entry_stays()


Case = Callable[[], Awaitable[None]]
PLANTED: dict[str, tuple[object, str, object, Case]] = {
    "unique delete without a look": (entries, "_freed", whichever, rivals_of_before),
    "uniqueness not looked at": (
        Cases,
        "where",
        never_checked,
        test_statements.test_given_a_unique_index_when_values_are_exchanged_or_taken_then_it_stays_one_each,
    ),
    "conflict told as done": (
        Writes,
        "_sent",
        conflict_is_done,
        test_statements.test_given_a_row_that_changes_meanwhile_when_updated_then_it_is_planned_again,
    ),
    "age of the copy that arrives": (
        StatementMemory,
        "time_of",
        as_it_arrives,
        held_up_frontend,
    ),
    "forgotten without a trace": (StatementMemory, "forget", without_a_trace, clocks_that_leap),
    "forgotten to make room": (StatementMemory, "add", to_make_room, clocks_that_leap),
    "statement done twice": (
        StatementMemory,
        "find",
        nothing_remembered,
        test_statements.test_given_a_statement_id_when_it_comes_again_then_it_is_done_once,
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
async def test_given_a_planted_bug_of_statements_when_its_case_is_lived_then_it_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where, name, planted, case = PLANTED[bug]
    monkeypatch.setattr(where, name, planted)

    with pytest.raises((*CAUGHT, BaseExceptionGroup)) as caught:
        await case()

    found: BaseException = caught.value
    while isinstance(found, BaseExceptionGroup):
        (found,) = found.exceptions
    with capsys.disabled():
        print(f"\n{bug}: {' '.join(repr(found).split())[:120]}", end="")
    assert isinstance(found, CAUGHT), found
