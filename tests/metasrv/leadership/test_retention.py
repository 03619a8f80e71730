"""Work and memory of what removes histories and keys: counted in operations, not in time."""

from collections.abc import Iterable
from random import Random
from string import ascii_letters, digits

import pytest

from keys.model.records import (
    ClientRequirements,
    Idempotency,
    IdempotencyKey,
    ProcedureHistory,
    ProcedureHistoryKey,
    ProcedureOutcome,
    ProcedurePhase,
    ProcedureRecord,
    Resource,
)
from keys.store.kv import Put, Request
from keys.value import encode
from metasrv.leadership import key_sweep
from metasrv.leadership.key_sweep import KeySweep
from metasrv.leadership.retention import KEPT_MS_MIN, ROWS_MAX, Retention
from metasrv.leadership.tally import COUNTED_ROWS_MAX, ENTRY_BYTES, FIRST_ROWS, PAGE_BYTES
from metasrv_base.ids import uuid7
from tests.metasrv.api.rig import DEADLINE_MS, Server, leader
from tests.metasrv.leadership.counted_store import CountingKv, idempotency_keys, kv_of, stored

HOUR_MS = 3_600_000


def noise(seed: int, length: int) -> str:
    """Text that takes six bits for each character, however it is packed."""
    return "".join(Random(seed).choices(ascii_letters + digits, k=length))


def ended(at_ms: int, digest: str | None, statement_bytes: int = 100) -> ProcedureHistory:
    client = ClientRequirements(
        submitted_by="anna",
        request_id="r",
        statement={"body": noise(at_ms, statement_bytes)},
        idempotency=digest,
    )
    last = ProcedureRecord(
        kind="create_table",
        kind_format=1,
        step="create",
        phase=ProcedurePhase.FORWARD,
        state={},
        submission=1,
        locks=(),
        resource=Resource.table(1024, "main", "public", "t"),
        client=client,
        submitted_at_ms=at_ms,
        deadline_at_ms=at_ms + 1,
    )
    return ProcedureHistory(
        outcome=ProcedureOutcome.SUCCEEDED,
        last=last,
        result={},
        finished_at_ms=at_ms,
        catalog_version=1,
    )


async def put(one: Server, values: Iterable[tuple[bytes, bytes]]) -> None:
    for key, value in values:
        await one.kv.txn(Request(writes=(Put(key, value),)), deadline_ms=DEADLINE_MS)


async def put_histories(
    one: Server, count: int, *, hours: float, statement_bytes: int = 100
) -> list[bytes]:
    """*count* histories with their keys, a millisecond apart, the first of them *hours* old."""
    first_ms = one.clock.wall_ms() - int(hours * HOUR_MS)
    found = []
    for number in range(count):
        at_ms, digest = first_ms + number, f"{number + int(hours) * 2**32:064x}"
        procedure = uuid7(at_ms, number.to_bytes(10, "big"))
        history = ended(at_ms, digest, statement_bytes)
        known = Idempotency(procedure=procedure, fingerprint="f" * 64, at_ms=at_ms)
        found.append(bytes(ProcedureHistoryKey(procedure)))
        await put(one, [(found[-1], encode(history))])
        await put(one, [(bytes(IdempotencyKey(digest)), encode(known))])
    one.term.tally.term = one.kv.revision  # earlier terms have left them
    return found


def histories(one: Server) -> dict[bytes, bytes]:
    return stored(one, ProcedureHistoryKey.under())


async def test_given_many_that_are_due_when_tidied_then_many_go_in_each_transaction() -> None:
    async with leader(nodes=0, make_kv=CountingKv) as one:
        await put_histories(one, 500, hours=24 * 8)
        young = await put_histories(one, 10, hours=1)
        kv_of(one).forget()

        deleted = await Retention(one.term).tidy(one.clock.wall_ms())

        assert deleted == 500
        assert list(histories(one)) == young
        assert len(idempotency_keys(one)) == 10
        assert max(kv_of(one).commits) == 2 * ROWS_MAX
        assert len(kv_of(one).commits) <= 500 // ROWS_MAX + 4  # the first pages are small
        assert kv_of(one).read_at_once <= ROWS_MAX
        assert max(kv_of(one).pages) <= COUNTED_ROWS_MAX


@pytest.mark.slow
async def test_given_wide_histories_when_tidied_then_pages_have_fewer_of_them() -> None:
    async with leader(nodes=0, make_kv=CountingKv) as one:
        await put_histories(one, 60, hours=24 * 8, statement_bytes=200_000)
        kv_of(one).forget()

        assert await Retention(one.term).tidy(one.clock.wall_ms()) == 60

        assert max(kv_of(one).page_bytes[:2]) <= FIRST_ROWS * 201_000
        assert max(kv_of(one).page_bytes[2:]) <= max(PAGE_BYTES, FIRST_ROWS * 201_000)
        assert histories(one) == {}


@pytest.mark.slow
async def test_given_more_bytes_than_allowed_then_the_oldest_go_after_a_day() -> None:
    async with leader(nodes=0, make_kv=CountingKv) as one:
        old = await put_histories(one, 300, hours=30, statement_bytes=10_000)
        young = await put_histories(one, 100, hours=10, statement_bytes=10_000)
        await one.term.settings.put("history_bytes_max", 2 << 20, "ops")
        retention = Retention(one.term)

        deleted = await retention.tidy(one.clock.wall_ms())

        left = list(histories(one))
        size = sum(ENTRY_BYTES + len(value) for value in histories(one).values())
        assert left == [*old[deleted:], *young]
        assert (2 << 20) - 12_000 < size <= 2 << 20
        assert retention.tally.size_bytes == size
        assert len(idempotency_keys(one)) == len(left)


@pytest.mark.slow
async def test_given_too_many_bytes_within_a_day_then_the_oldest_go_and_it_shows() -> None:
    async with leader(nodes=0, make_kv=CountingKv) as one:
        old = await put_histories(one, 200, hours=20, statement_bytes=14_000)
        await one.term.settings.put("history_bytes_max", 1 << 20, "ops")
        retention = Retention(one.term)

        deleted = await retention.tidy(one.clock.wall_ms())

        assert list(histories(one)) == old[deleted:]
        assert 0 < deleted < 200
        assert (1 << 20) - 16_000 < retention.tally.size_bytes <= 1 << 20
        assert len(idempotency_keys(one)) == len(histories(one))
        shown = dict(
            line.split()
            for line in (await one.client.get("/metrics")).text.splitlines()
            if line.startswith("metasrv_history")
        )
        assert float(shown["metasrv_history_deleted_early"]) == deleted
        assert float(shown["metasrv_history_bytes"]) == retention.tally.size_bytes


@pytest.mark.slow
async def test_given_too_many_bytes_within_an_hour_then_nothing_goes_before_its_time() -> None:
    async with leader(nodes=0, make_kv=CountingKv) as one:
        await put_histories(one, 200, hours=0.9, statement_bytes=14_000)
        await one.term.settings.put("history_bytes_max", 1 << 20, "ops")
        retention = Retention(one.term)

        early = await retention.tidy(one.clock.wall_ms())
        one.clock.ahead_ms += HOUR_MS // 10 + 1_000
        late = await retention.tidy(one.clock.wall_ms())

        assert early == 0
        assert 0 < late < 200
        assert retention.tally.size_bytes <= 1 << 20


async def test_given_histories_of_this_term_and_before_then_each_is_counted_once() -> None:
    async with leader(nodes=1, make_kv=CountingKv) as one:
        for name in ("a", "b", "c"):
            await one.make(name)
        retention = Retention(one.term)

        await retention.tidy(one.clock.wall_ms())
        await one.make("d")

        size = sum(ENTRY_BYTES + len(value) for value in histories(one).values())
        assert len(histories(one)) == 4
        assert one.term.tally.size_bytes == size


async def test_given_idempotency_keys_without_histories_when_swept_then_memory_stays_flat() -> None:
    async with leader(nodes=0, make_kv=CountingKv) as one:
        old_ms = one.clock.wall_ms() - KEPT_MS_MIN - 1
        for number in range(2_000):
            at_ms = old_ms if number % 2 else one.clock.wall_ms()
            known = Idempotency(
                procedure=uuid7(at_ms, number.to_bytes(10, "big")), fingerprint="f", at_ms=at_ms
            )
            digest = f"{number * 2_654_435_761 % 2**32:08x}".ljust(64, "0")
            await put(one, [(bytes(IdempotencyKey(digest)), encode(known))])
        kv_of(one).forget()
        sweep = KeySweep(one.term)

        looks = [await sweep.tidy(one.clock.wall_ms()) for _ in range(2)]

        assert sum(looks) == 1_000
        assert len(idempotency_keys(one)) == 1_000
        assert max(kv_of(one).pages) <= key_sweep.ROWS_MAX
        assert kv_of(one).read_at_once == 0
        assert max(kv_of(one).commits) <= key_sweep.ROWS_MAX


async def test_given_a_key_whose_procedure_lives_or_is_over_when_swept_then_it_stays() -> None:
    async with leader(nodes=1, make_kv=CountingKv) as one:
        await put_histories(one, 50, hours=48)

        swept = await KeySweep(one.term).tidy(one.clock.wall_ms())

        assert swept == 0
        assert len(idempotency_keys(one)) == 50


@pytest.mark.parametrize("pages", [1, 3])
async def test_given_more_than_one_look_takes_then_the_next_goes_on_there(
    pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metasrv.leadership.retention.PAGES_MAX", pages)
    async with leader(nodes=0, make_kv=CountingKv) as one:
        await put_histories(one, 100, hours=24 * 8)
        retention = Retention(one.term)
        looks = 0

        while histories(one):
            kv_of(one).forget()
            await retention.tidy(one.clock.wall_ms())
            looks += 1
            assert len(kv_of(one).commits) <= pages

        assert looks <= 10
