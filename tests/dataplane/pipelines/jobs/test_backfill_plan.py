"""Parts of a backfill, and the rate of each."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.pipelines.jobs.backfill_plan import (
    OUTPUT_BYTES,
    PIECE_BYTES,
    PIECE_ROWS,
    Survey,
    cut_outputs,
    cut_pieces,
    piece_rows,
)
from dataplane.pipelines.pace import (
    STOPPED,
    Bucket,
    PaceAddress,
    PaceClient,
    PaceServer,
    SharedBucket,
)
from metasrv_base.errors import Unavailable
from tests.fakes.clock import FakeClock

STEPS = st.lists(st.tuples(st.binary(max_size=3), st.integers(1, 50)), max_size=12)


@given(files=st.lists(STEPS, max_size=4), piece_rows=st.integers(1, 100))
def test_given_files_when_cut_then_every_key_is_in_one_piece(
    files: list[list[tuple[bytes, int]]], piece_rows: int
) -> None:
    pieces = cut_pieces([Survey(tuple(sorted(steps)), ()) for steps in files], piece_rows)

    assert pieces[0].start == b""
    assert pieces[-1].end is None
    assert [one.end for one in pieces[:-1]] == [one.start for one in pieces[1:]]
    assert all(one.end is None or one.start < one.end for one in pieces)
    total = sum(rows for steps in files for _, rows in steps)
    assert len(pieces) <= 1 + total // piece_rows


@given(samples=st.lists(st.binary(max_size=3), max_size=60), rows=st.integers(0, 1 << 26))
def test_given_samples_when_cut_then_bounds_rise_and_no_file_is_below_them_all(
    samples: list[bytes], rows: int
) -> None:
    bounds = cut_outputs([Survey((), tuple(samples))], rows, tasks_at_once=2)

    assert list(bounds) == sorted(set(bounds))
    assert all(min(samples) < bound <= max(samples) for bound in bounds)
    assert len(bounds) < max(rows // (64 << 10), 2)


def test_given_wide_entries_when_cut_then_their_bytes_count() -> None:
    samples = tuple(b"%04d" % number + b"x" * 9_996 for number in range(64))

    assert len(cut_outputs([Survey((), samples)], 4 * OUTPUT_BYTES // 10_000, 2)) == 3
    assert cut_outputs([Survey((), samples)], 1_000, 2) == ()
    assert piece_rows([Survey((), samples)]) == PIECE_BYTES // 10_000
    assert piece_rows([Survey((), (b"short",))]) == piece_rows([]) == PIECE_ROWS


def test_given_a_rate_when_rows_are_taken_then_the_next_waits_for_what_is_owed() -> None:
    bucket = Bucket(1_000)

    assert bucket.take(500, now_ms=0) == 0
    assert bucket.take(10, now_ms=100) == 400
    assert bucket.take(10, now_ms=499) == 1
    assert bucket.take(10, now_ms=500) == 0
    assert bucket.take(10, now_ms=10_000) == 0, "nothing was saved up meanwhile"
    assert bucket.take(10, now_ms=10_000) == 10
    assert bucket.taken == 520


def test_given_a_job_of_one_batch_when_all_is_read_then_its_end_waits_for_what_is_owed() -> None:
    clock = FakeClock()
    bucket = SharedBucket(2_000, clock)
    bucket.take(4_000)
    assert bucket.paid == 0

    with ThreadPoolExecutor(1) as pool:
        settled = pool.submit(bucket.settle)
        clock.advance(1_000)
        assert (bucket.paid, settled.done()) == (2_000, False)
        clock.advance(1_000)
        settled.result(timeout=120)

    assert bucket.paid == bucket.taken == 4_000


def test_given_jobs_of_one_procedure_when_some_only_wait_then_the_others_have_the_whole_rate() -> (
    None
):
    clock = FakeClock()
    first = SharedBucket(2_000, clock)
    second = SharedBucket(2_000, clock, beside=first)
    jobs = (first, second, *(SharedBucket(2_000, clock, beside=first) for _ in range(2)))

    for turn in range(1_000):
        clock.advance(10)
        for job in (first, second) if turn % 2 else (second, first):
            job.take(100)

    assert 19_500 <= sum(job.taken for job in jobs) <= 20_100
    assert min(first.taken, second.taken) > 0
    assert [job.paid for job in jobs[2:]] == [0, 0]


def test_given_jobs_that_share_a_rate_when_one_is_done_then_it_waits_for_its_own_rows_alone() -> (
    None
):
    clock = FakeClock()
    first = SharedBucket(1_000, clock)
    second = SharedBucket(1_000, clock, beside=first)
    first.take(1_000)
    clock.advance(1_000)
    second.take(5_000)

    first.settle()

    assert (first.paid, second.paid) == (1_000, 0)
    first.stop()
    clock.advance(5_000)
    assert (first.take(1), second.take(1)) == (STOPPED, 0)


def test_given_jobs_that_share_a_rate_when_one_is_told_another_then_it_is_that_of_all() -> None:
    clock = FakeClock()
    first = SharedBucket(1, clock)
    first.take(1_000)
    second = SharedBucket(None, clock, beside=first)

    assert (first.take(1), second.take(1)) == (0, 0)


def test_given_what_is_owed_when_the_job_is_stopped_then_nobody_waits_for_it() -> None:
    bucket = SharedBucket(1, FakeClock())
    bucket.take(1_000_000)

    bucket.stop()

    bucket.settle()


def test_given_a_job_that_waits_when_its_rate_changes_then_the_new_one_counts() -> None:
    bucket = Bucket(1)
    bucket.take(1_000, now_ms=0)
    assert bucket.take(1, now_ms=0) == 1_000_000

    bucket.rows_per_s = 100_000
    assert bucket.take(1, now_ms=0) == 10
    bucket.rows_per_s = None
    assert bucket.take(1, now_ms=0) == 0


@given(
    asks=st.lists(st.tuples(st.integers(1, 500), st.integers(0, 300)), min_size=1, max_size=30),
    rate=st.integers(1, 5_000),
)
def test_given_any_questions_when_rows_are_taken_then_never_faster_than_the_rate(
    asks: list[tuple[int, int]], rate: int
) -> None:
    bucket, now_ms, last = Bucket(rate), 0, 0

    for rows, pause_ms in asks:
        now_ms += pause_ms
        if bucket.take(rows, now_ms) == 0:
            last = rows
        assert bucket.taken - last <= rate * now_ms / 1_000 + 0.001


def test_given_tasks_over_a_socket_when_they_take_rows_then_one_bucket_counts_them() -> None:
    bucket = SharedBucket(None, FakeClock())

    with PaceServer(bucket, "127.0.0.1") as server, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: take_ten(server.address), range(8)))

    assert bucket.taken == 80


def take_ten(address: PaceAddress) -> None:
    with closing(PaceClient(address)) as client:
        for _ in range(10):
            client.take(1)


@pytest.mark.parametrize("how", ["stopped", "another secret", "gone"])
def test_given_a_driver_that_lets_nobody_on_when_asked_then_unavailable(how: str) -> None:
    bucket = SharedBucket(None, FakeClock())

    with PaceServer(bucket, "127.0.0.1") as server:
        address = server.address
        if how == "another secret":
            address = PaceAddress(address.host, address.port, "0" * 32)
        if how == "stopped":
            bucket.stop()
        if how != "gone":
            with closing(PaceClient(address)) as client, pytest.raises(Unavailable):
                client.take(1)
    if how == "gone":
        with pytest.raises(Unavailable):
            take_ten(address)

    assert bucket.taken == 0
