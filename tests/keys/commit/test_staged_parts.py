"""Parts are read whole, in order, a part in a turn, and hold what was put into them."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.commit.staged_parts import (
    MissingParts,
    StagedParts,
    WholeItem,
    is_staged,
    read_parts,
    whole_item,
    whole_update,
)
from keys.commit.staging import ENTRIES, MEMBERS, PartsReference, parts_of
from keys.model.log import CatalogUpdate, CatalogUpdateKey, Entry, StagedRef, format_of
from keys.model.staging.parts import BatchPart, BatchPartKey, items_json
from keys.packed import deflated
from keys.store.kv import Delete, KeyValue, Put, Request
from keys.store.memory import MemoryKv
from keys.value import NewerFormat, encode
from metasrv_base.concurrency.turns import at_once
from metasrv_base.errors import Corrupt
from tests.keys.catalog.logs import DEADLINE_MS, World, update
from tests.keys.commit.large_changes import BY
from tests.sim.loop import SimClock, run

BATCH = f"{BY}.1.1"
VERSION = 7
KEY = bytes(CatalogUpdateKey(VERSION))
Main = Callable[[MemoryKv, StagedRef, CatalogUpdate], Awaitable[None]]


def entries_of(seed: int, count: int) -> tuple[Entry, ...]:
    world = World(seed)
    return tuple(world.entry() for _ in range(count))


async def put(kv: MemoryKv, *writes: Put | Delete) -> None:
    await kv.txn(Request(writes=writes), deadline_ms=DEADLINE_MS)


def with_parts(entries: Iterable[Entry], part_bytes: int, main: Main) -> None:
    """Runs *main* with a store that has the parts of an update, and the update."""

    async def begin(loop: Any) -> None:
        kv, reference, whole = MemoryKv(SimClock(loop)), PartsReference(BATCH), update(VERSION)
        for key, raw in parts_of(BATCH, ENTRIES, entries, part_bytes=part_bytes):
            reference.add(raw)
            await put(kv, Put(bytes(key), raw))
        own = {"format": format_of(tuple(entries)), "entries": tuple(entries)}
        await main(kv, reference.made(), whole.model_copy(update=own))

    run(begin, 1)


@given(
    seed=st.integers(0, 10_000),
    count=st.integers(0, 40),
    part_bytes=st.sampled_from([1, 700, 3_000, 1 << 20]),
)
def test_given_any_entries_in_parts_when_read_then_they_are_those_and_a_turn_has_one_part(
    seed: int, count: int, part_bytes: int
) -> None:
    async def main(kv: MemoryKv, ref: StagedRef, whole: CatalogUpdate) -> None:
        staged = whole.without_entries(ref)
        parts = await read_parts(kv, ref, deadline_ms=DEADLINE_MS)

        assert await whole_update(kv, whole, deadline_ms=DEADLINE_MS) is whole
        read = await whole_update(kv, staged, deadline_ms=DEADLINE_MS)
        assert read.entries == whole.entries
        for work in (StagedParts.of(ref, parts.items), parts.entries(), parts.entry_lists()):
            assert sum(1 for _ in work) == ref.parts

    with_parts(entries_of(seed, count), part_bytes, main)


@given(seed=st.integers(0, 10_000), part_bytes=st.sampled_from([1, 700, 1 << 20]))
def test_given_a_stored_update_in_parts_when_made_whole_then_it_has_the_entries_of_one_value(
    seed: int, part_bytes: int
) -> None:
    async def main(kv: MemoryKv, ref: StagedRef, whole: CatalogUpdate) -> None:
        item = KeyValue(KEY, encode(whole.without_entries(ref)), 3, 3)
        small = KeyValue(KEY, encode(whole), 3, 3)
        assert (is_staged(item.value), is_staged(small.value)) == (True, False)

        read = await whole_item(kv, item, deadline_ms=DEADLINE_MS)

        of_small = await whole_item(kv, small, deadline_ms=DEADLINE_MS)
        assert (of_small, of_small.decoded()) == (WholeItem(small), whole)
        assert read.item is item
        assert len(read.lists) == ref.parts, "they are not joined"
        assert read.json_bytes == len(item.value) + sum(map(len, read.lists))
        number = max(4, format_of(whole.entries))
        assert read.decoded() == whole.model_copy(update={"format": number, "staged": ref})

    with_parts(entries_of(seed, 20), part_bytes, main)


FAULTS: dict[str, tuple[Callable[[StagedRef], Put | Delete], type[Exception]]] = {
    "the last is missing": (
        lambda ref: Delete(bytes(BatchPartKey(BATCH, ref.parts - 1))),
        MissingParts,
    ),
    "one too many": (lambda ref: Put(bytes(BatchPartKey(BATCH, ref.parts)), b"x"), MissingParts),
    "another one": (
        lambda ref: Put(bytes(BatchPartKey(BATCH, 0)), encode(BatchPart(batch=BATCH, part=0))),
        Corrupt,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_given_other_parts_than_were_named_when_read_then_corrupt(fault: str) -> None:
    write, error = FAULTS[fault]

    async def main(kv: MemoryKv, ref: StagedRef, whole: CatalogUpdate) -> None:
        await put(kv, write(ref))
        item = KeyValue(KEY, encode(whole.without_entries(ref)), 3, 3)
        with pytest.raises(error):
            await whole_update(kv, whole.without_entries(ref), deadline_ms=DEADLINE_MS)
        with pytest.raises(error):
            await whole_item(kv, item, deadline_ms=DEADLINE_MS)

    with_parts(entries_of(1, 20), 700, main)


@pytest.mark.parametrize("text", [b"[", b'[{"op":"none"}]', b"{}"])
def test_given_a_list_of_other_things_when_decoded_then_corrupt(text: bytes) -> None:
    ref = StagedRef(batch=BATCH, parts=1, size_bytes=1, digest="0" * 64)
    item = KeyValue(KEY, encode(update(VERSION).without_entries(ref)), 3, 3)

    with pytest.raises(Corrupt):
        WholeItem(item, (text,)).decoded()


def test_given_no_part_when_one_has_no_items_then_it_is_there_and_empty() -> None:
    async def main(kv: MemoryKv, ref: StagedRef, whole: CatalogUpdate) -> None:
        parts = await read_parts(kv, ref, deadline_ms=DEADLINE_MS)

        assert ref.parts == 1
        assert at_once(parts.entries()) == ()
        assert at_once(parts.entry_lists()) == (b"[]",)

    with_parts((), 700, main)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b'{"format":2,"batch":"p.1.1","part":0,"entries":[]}', NewerFormat),
        (b'{"format":1,"batch":"p.1.1","part":1,"entries":[]}', Corrupt),
        (b'{"format":1,"batch":"p.1.1","part":0,"members":[]}', Corrupt),
        (b'{"format":1,"batch":"p.1.1","part":0,"entries":[', Corrupt),
        (b"x", Corrupt),
    ],
)
def test_given_a_part_that_was_not_made_so_when_its_items_are_taken_then_corrupt(
    text: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        items_json(
            deflated(text.replace(b"p.1.1", BATCH.encode())), BatchPartKey(BATCH, 0), ENTRIES
        )


def test_given_commands_in_parts_when_decoded_then_they_are_not_taken_for_entries() -> None:
    (part,) = parts_of(BATCH, MEMBERS, entries_of(1, 3), part_bytes=1 << 20)

    with pytest.raises(Corrupt):
        items_json(part.raw, part.key, ENTRIES)
