"""Values that entries write are encoded in turns that are bounded by values and by bytes."""

from collections.abc import Callable
from typing import Any

import pytest

from keys.catalog.catalog import Catalog
from keys.catalog.known import CatalogByKey
from keys.commit import change
from keys.commit.change import copies_of, size_of
from keys.commit.entry_writes import ENTRIES_AT_ONCE
from keys.model.log import Entry, TableCreated
from keys.value import encode
from metasrv_base.concurrency.turns import Turns
from tests.keys.catalog.logs import first_update
from tests.procedures.harness.tables import table_info, table_route

TABLES = 100
WRITES = 4
"""Keys of one table: its definition, its name, its route, and the reverse of it."""
Work = Callable[[tuple[Entry, ...], Any], Turns[Any]]


def tables(comment: str) -> tuple[Entry, ...]:
    made = list[Entry]()
    for number in range(1024, 1024 + TABLES):
        info = table_info(number, f"t{number}", 1)
        info = info.model_copy(update={"options": {"comment": comment}})
        made.append(TableCreated(info=info, route=table_route(number, ("dn-1",))))
    return tuple(made)


def turns_of(work: Turns[Any], encoded: list[int]) -> list[list[int]]:
    """The sizes of the values that each turn encodes."""
    turns = list[list[int]]()
    while True:
        encoded.clear()
        try:
            next(work)
        except StopIteration:
            return [*turns, list(encoded)]
        turns.append(list(encoded))


@pytest.mark.parametrize("work", [copies_of, size_of])
@pytest.mark.parametrize("comment_bytes", [0, 400, 3_000])
def test_given_any_tables_when_encoded_then_a_turn_has_few_of_them_and_few_bytes(
    work: Work, comment_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = list[int]()

    def counted(value: Any) -> bytes:
        raw = encode(value)
        encoded.append(len(raw))
        return raw

    monkeypatch.setattr(change, "encode", counted)
    monkeypatch.setattr(change, "TURN", 16)
    monkeypatch.setattr(change, "BYTES_AT_ONCE", 5_000)
    entries = tables("x" * comment_bytes)
    catalog = Catalog().apply(first_update(), 1)

    turns = turns_of(work(entries, CatalogByKey(catalog)), encoded)

    assert sum(map(len, turns)) == TABLES * WRITES
    assert all(len(sizes) <= 16 for sizes in turns)
    assert all(sum(sizes[:-1]) < 5_000 for sizes in turns), "the last may pass it"
    assert sum(1 for sizes in turns if not sizes) >= TABLES // ENTRIES_AT_ONCE
