"""Copies fetch the files of leaders: bounded, tried again, never taken before they are whole."""

import asyncio

import pytest

from dataplane.datanode.copies.copy_sessions import IDLE_MS_MAX, SESSION_MS_MAX, SESSIONS_MAX
from dataplane.datanode.copies.file_fetches import LATER
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable
from tests.dataplane.datanode.copies.fetch_bench import Bench, copies, open_order, request
from tests.dataplane.region.following.stream import promoted
from tests.dataplane.region.rig import A, B, contents


async def test_given_a_copy_that_needs_files_when_fetched_then_it_has_them() -> None:
    bench = Bench()

    assert await bench.fetches.fetch_one()

    assert bench.copy.needs_files is None
    assert bench.copy.durable.sequence == 15
    assert bench.followed.progress is None
    assert bench.network.read[0] == 0, "the manifest"
    assert promoted(bench.copy, 2) == contents(bench.region)
    assert not await bench.fetches.fetch_one(), "none needs files any more"


async def test_given_a_copy_that_was_not_told_of_the_leader_then_it_waits_for_the_order() -> None:
    bench = Bench()
    bench.followed.hear(open_order(2, copies(2)))
    assert not await bench.fetches.fetch_one()
    assert bench.network.read == []

    bench.followed.hear(open_order(1, copies()))

    assert await bench.fetches.fetch_one()


async def test_given_a_leader_that_is_cut_off_in_the_middle_then_the_rest_comes_later() -> None:
    bench = Bench()

    def cut(file: int, offset: int, data: bytes) -> bytes:
        if file == 3:
            raise Unavailable("not-ready", what="dn-1")
        return data

    bench.network.harm = cut
    assert not await bench.fetches.fetch_one()
    assert not await bench.fetches.fetch_one(), "it rests"
    assert bench.copy.durable.sequence == 0
    bench.network.read.clear()
    bench.network.harm = lambda file, offset, data: data
    bench.clock.advance(LATER.first_ms)

    assert await bench.fetches.fetch_one()

    assert 2 not in bench.network.read, "the first data file was here"
    assert {1, 3, 4} <= set(bench.network.read)
    assert promoted(bench.copy, 2) == contents(bench.region)


async def test_given_a_byte_that_is_changed_on_its_way_then_the_file_is_fetched_again() -> None:
    for file in range(5):
        bench = Bench()
        bench.network.harm = (
            lambda number, offset, data, file=file: (  # type: ignore[misc]
                bytes([data[0] ^ 0x40]) + data[1:] if number == file and data else data
            )
        )
        assert not await bench.fetches.fetch_one()
        assert bench.copy.durable.sequence == 0
        assert bench.copy.needs_files == 1

        bench.network.harm = lambda number, offset, data: data
        bench.clock.advance(LATER.first_ms)
        assert await bench.fetches.fetch_one()
        assert promoted(bench.copy, 2) == contents(bench.region)


async def test_given_a_disk_that_is_full_then_the_fetch_goes_on_when_there_is_room() -> None:
    bench = Bench()
    full = [False]

    def fill(operation: str, path: str) -> None:
        if full[0] and operation in ("create", "append"):
            raise Unavailable("storage-full", path=path)

    bench.copy.place.disk._hook = fill  # type: ignore[attr-defined]

    def is_full(file: int, offset: int, data: bytes) -> bytes:
        full[0] = file == 3
        return data

    bench.network.harm = is_full
    assert not await bench.fetches.fetch_one()
    assert bench.copy.durable.sequence == 0
    full[0], bench.network.harm = False, lambda file, offset, data: data
    bench.clock.advance(LATER.first_ms)

    assert await bench.fetches.fetch_one()

    assert promoted(bench.copy, 2) == contents(bench.region)


async def test_given_a_copy_that_is_closed_meanwhile_then_nothing_is_written_any_more() -> None:
    """As for a drop of the region, which then deletes the folder."""
    bench = Bench()
    closing = list[int]()
    async with asyncio.TaskGroup() as group:

        def close(file: int, offset: int, data: bytes) -> bytes:
            if file == 2 and not closing:
                closing.append(file)
                group.create_task(bench.followed.close())
            return data

        bench.network.harm = close
        assert not await bench.fetches.fetch_one()
    bench.disk.remove_tree(B)

    bench.clock.advance(LATER.max_ms)
    assert not await bench.fetches.fetch_one()

    with pytest.raises(NotFound):
        bench.disk.list(B)


async def test_given_a_rate_when_files_are_fetched_then_they_take_their_time() -> None:
    bench = Bench(bytes_per_s=1_000)
    began_ms = bench.clock.mono_ms()

    assert await bench.fetches.fetch_one()

    size = sum(file.bytes for file in bench.region.manifest.files)
    assert bench.clock.mono_ms() - began_ms >= size - 500


async def test_given_a_session_that_is_not_used_then_it_ends_and_its_files_may_go() -> None:
    bench = Bench(files=8)
    session = await bench.sessions.begin(request())
    bench.clock.advance(IDLE_MS_MAX - 1)
    assert await bench.sessions.read(session.session, 2, 0, 10)
    while bench.region.maintenance.compact():
        pass
    assert bench.region.maintenance.sweep() == 0, "they are pinned"

    bench.clock.advance(IDLE_MS_MAX)

    with pytest.raises(NotFound):
        await bench.sessions.read(session.session, 2, 0, 10)
    assert bench.region.maintenance.sweep() > 0


async def test_given_a_session_that_lasts_then_it_ends_however_much_it_is_used() -> None:
    bench = Bench()
    session = await bench.sessions.begin(request())

    for _ in range(SESSION_MS_MAX // IDLE_MS_MAX):
        await bench.sessions.read(session.session, 2, 0, 10)
        bench.clock.advance(IDLE_MS_MAX - 1)
    bench.clock.advance(IDLE_MS_MAX - 1)

    with pytest.raises(NotFound):
        await bench.sessions.read(session.session, 2, 0, 10)


async def test_given_as_many_sessions_as_a_node_has_then_another_is_refused() -> None:
    bench = Bench()
    names = [(await bench.sessions.begin(request())).session for _ in range(SESSIONS_MAX)]

    with pytest.raises(Unavailable):
        await bench.sessions.begin(request())

    bench.sessions.end(names[0])
    await bench.sessions.begin(request())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"cluster_id": "other"}, Conflict),
        ({"node_id": "dn-3"}, Conflict),
        ({"epoch": 2}, Conflict),
        ({"root": B}, NotFound),
        ({"region_id": "1"}, NotFound),
    ],
)
async def test_given_a_request_that_means_another_leader_then_it_is_refused(
    change: dict[str, object], error: type[MetaError]
) -> None:
    with pytest.raises(error):
        await Bench().sessions.begin(request(**change))


async def test_given_a_file_that_the_session_does_not_have_then_not_found() -> None:
    bench = Bench()
    session = (await bench.sessions.begin(request())).session

    with pytest.raises(NotFound):
        await bench.sessions.read(session, 99, 0, 10)
    with pytest.raises(NotFound):
        await bench.sessions.read("none", 0, 0, 10)
    assert await bench.sessions.read(session, 2, 1 << 40, 10) == b""
    bench.region.place.disk.remove(f"{A}/{bench.region.manifest.statement_files[0].name}")
    with pytest.raises(NotFound):
        await bench.sessions.read(session, 1, 0, 10)


async def test_given_a_region_that_is_closed_then_its_sessions_end() -> None:
    bench = Bench()
    session = await bench.sessions.begin(request())
    bench.region.close()

    with pytest.raises(NotFound):
        await bench.sessions.read(session.session, 2, 0, 10)
