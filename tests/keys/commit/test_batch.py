"""Filling a batch, sealing it and judging its answer: pure."""

from dataclasses import replace
from typing import NamedTuple

import pytest

from keys.commit.batch import (
    Batch,
    BatchOutcome,
    BatchVerdict,
    LogHead,
    PendingTxn,
    outcome_of,
    seal,
)
from keys.commit.packing import pack
from keys.commit.txn import Txn
from keys.key import Range
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.cluster import Sequence, SequenceKey
from keys.model.log import CatalogUpdateKey, CatalogVersionKey, SchemaCreated
from keys.store.kv import TXN_BYTES_MAX, TXN_OPS_MAX, Compare, KeyValue, Put, TxnAnswer
from keys.store.limits import request_bytes
from metasrv_base.errors import Refused
from tests.keys.commit.changes import absent, told, untold
from tests.keys.commit.leading_committer import count, schema

HEAD = LogHead(Compare(b"__election/leader", 5), 3, 9, 1_000, 40)
VERSION = bytes(CatalogVersionKey())
SEQUENCES = SequenceKey.under()


class Filled(NamedTuple):
    """A batch, and the places of its members."""

    batch: Batch
    taken: tuple[int, ...]


def filled(*txns: Txn, now_ms: int = 5_000) -> Filled:
    members = [PendingTxn(txn, f"p{place}") for place, txn in enumerate(txns)]
    packed = pack(HEAD, members, now_ms, members_max=TXN_OPS_MAX)
    return Filled(seal(HEAD, packed.after, packed.shares), packed.taken)


def reading(*names: str) -> Txn:
    """Compares some keys that it does not write."""
    txn = Txn()
    for name in names:
        txn = txn.expecting(SequenceKey(name), 3)
    return txn


def wide(mine: str, *, compares: int = 2, puts: int = 1) -> Txn:
    """So many compares and puts, with no key that another one has."""
    key = SequenceKey(mine)
    txn = Txn().expecting(key, 0).put(key, Sequence(next=1))
    for number in range(1, compares):
        txn = txn.expecting(SequenceKey(f"{mine}_c{number}"), 0)
    for number in range(1, puts):
        txn = txn.put(SequenceKey(f"{mine}_p{number}"), Sequence(next=1), derived_from=key)
    return txn


def long(name: str, size_bytes: int) -> Txn:
    info = SchemaInfo(
        schema_id=1, catalog="main", name=name, options={"a": "b" * size_bytes}, created_at_ms=1
    )
    key = SchemaNameKey("main", name)
    return untold(Txn.on(absent(key)), key, info)


JUST_FITS = TXN_BYTES_MAX - request_bytes(filled(long("m", 0)).batch.request)


# ---- what is filled in


def test_given_metadata_when_filled_then_version_log_and_time_are_filled_in() -> None:
    batch = filled(schema("s"), now_ms=500).batch

    (share,) = batch.shares
    assert (share.stamp.catalog_version, share.stamp.submission) == (4, 41)
    assert share.stamp.at_ms == 1_001  # a clock that went back does not turn the log back
    assert Compare(VERSION, 9) in batch.request.compares
    assert HEAD.fence == batch.request.compares[0]
    written = {write.key for write in batch.request.writes}
    assert {VERSION, bytes(CatalogUpdateKey(4))} < written
    assert batch.head_after(12) == LogHead(HEAD.fence, 4, 12, 1_001, 41)


def test_given_no_metadata_when_filled_then_the_log_is_left_alone() -> None:
    batch = filled(count("x", 1)).batch

    assert (batch.shares[0].stamp.catalog_version, batch.updates) == (None, ())
    assert batch.head_after(12) == replace(HEAD, submission=41)


def test_given_several_when_filled_then_versions_are_dense_and_the_version_is_put_once() -> None:
    batch = filled(schema("a"), count("x", 1), schema("b")).batch

    stamps = [share.stamp for share in batch.shares]
    assert [stamp.catalog_version for stamp in stamps] == [4, None, 5]
    assert [stamp.submission for stamp in stamps] == [41, 42, 43]
    assert stamps[0].at_ms < stamps[2].at_ms
    assert [update.version for update in batch.updates] == [4, 5]
    assert [update.procedure for update in batch.updates] == ["p0", "p2"]
    assert [write.key for write in batch.request.writes].count(VERSION) == 1
    assert batch.head_after(12).version == 5


def test_given_one_key_read_by_all_when_filled_then_it_is_compared_once() -> None:
    batch = filled(*(wide(name).also(reading("shared")) for name in "abc")).batch

    keys = [compare.key for compare in batch.request.compares]
    assert keys.count(bytes(SequenceKey("shared"))) == 1


def test_given_a_change_without_a_witness_when_filled_then_it_is_a_bug() -> None:
    gone = Txn().expecting(SequenceKey("x"), 0).delete(SequenceKey("x"))

    for txn in (reading("x"), gone):
        with pytest.raises(AssertionError):
            filled(txn)


# ---- who may share


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (count("x", 1), count("x", 2)),
        (count("x", 1, seen=3), wide("y").also(reading("x"))),
        (wide("y").also(reading("x")), count("x", 1, seen=3)),
        (count("x", 1), schema("s").while_empty(SEQUENCES)),
        (schema("s").while_empty(SEQUENCES), count("x", 1)),
        (wide("y").also(reading("x")), wide("z").expecting(SequenceKey("x"), 4)),
        (count("x", 1), schema("s").while_unchanged(SEQUENCES, 3)),
        (schema("s").while_unchanged(SEQUENCES, 3), count("x", 1)),
    ],
    ids=[
        "write write",
        "write read",
        "read write",
        "write range",
        "range write",
        "torn reads",
        "write unchanged range",
        "unchanged range write",
    ],
)
def test_given_two_that_clash_when_filled_then_the_second_waits(first: Txn, second: Txn) -> None:
    assert filled(first, second).taken == (0,)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (count("x", 1), count("y", 1)),
        (wide("y").also(reading("x")), wide("z").also(reading("x"))),
        (schema("s").while_empty(SEQUENCES), schema("t").while_empty(SEQUENCES)),
        (count("x", 1), schema("s").while_empty(Range(b"__sequence/y", b"__sequence/z"))),
        (schema("s").while_unchanged(SEQUENCES, 3), schema("t").while_unchanged(SEQUENCES, 4)),
    ],
    ids=["apart", "read read", "range range", "outside of the range", "of two revisions"],
)
def test_given_two_that_do_not_clash_when_filled_then_they_share(first: Txn, second: Txn) -> None:
    assert filled(first, second).taken == (0, 1)


def test_given_one_left_behind_when_filled_then_nobody_overtakes_whom_it_clashes_with() -> None:
    chain = count("x", 1), wide("y").also(reading("x")), count("y", 9, seen=5), count("z", 1)

    assert filled(*chain).taken == (0, 3)
    assert filled(*chain[1:3]).taken == (0,)


# ---- limits


@pytest.mark.parametrize("shape", [{"compares": 30}, {"puts": 30}])
def test_given_many_when_filled_then_a_batch_takes_what_fits(shape: dict[str, int]) -> None:
    waiting = [wide(f"m{number}", **shape) for number in range(6)]

    found = filled(*waiting)

    assert found.taken == (0, 1, 2, 3)
    assert len(found.batch.request.compares) <= TXN_OPS_MAX
    assert len(found.batch.request.writes) <= TXN_OPS_MAX


def test_given_values_beyond_the_bytes_when_filled_then_the_batch_is_split() -> None:
    found = filled(long("a", 900_000), long("b", 900_000), long("c", 500_000))

    assert found.taken == (0, 2)  # the small one goes along; the large one is first in the next
    assert request_bytes(found.batch.request) <= TXN_BYTES_MAX


@pytest.mark.parametrize(
    "txn",
    [wide("m", compares=TXN_OPS_MAX - 1), wide("m", puts=TXN_OPS_MAX), long("m", JUST_FITS)],
    ids=["compares", "puts", "bytes"],
)
def test_given_one_that_just_fits_alone_when_filled_then_it_is_taken(txn: Txn) -> None:
    assert filled(count("x", 1), txn).taken == (0,)
    assert filled(txn).taken == (0,)


def test_given_one_that_does_not_fit_alone_when_first_then_refused_with_the_numbers() -> None:
    for txn in (wide("m", compares=TXN_OPS_MAX), long("m", JUST_FITS + 1)):
        assert filled(count("x", 1), txn).taken == (0,)

        with pytest.raises(Refused) as refused:
            filled(txn)
        assert refused.value.code == "ddl-too-large"
        assert {"operations", "bytes"} <= refused.value.facts.keys()


def test_given_metadata_when_filled_then_version_and_log_count_too() -> None:
    fits = wide("m", compares=TXN_OPS_MAX - 2)
    entry = SchemaCreated(info=SchemaInfo(schema_id=1, catalog="main", name="s", created_at_ms=1))

    assert filled(told(fits, entry)).taken == (0,)
    with pytest.raises(Refused):
        filled(told(fits.expecting(SequenceKey("one_more"), 0), entry))


# ---- the answer


def refused(
    batch: Batch, found: dict[str, int], *, in_doubt: bool = False, ours: bool = False
) -> BatchOutcome:
    """Where the keys of *found* had those revisions; `ours`: the witness stands as we write it."""
    ranges = []
    for compare, get in zip(batch.request.compares, batch.request.on_refusal, strict=True):
        name = compare.key.decode().rsplit("/", 1)[-1]
        revision = found.get(name, compare.mod_revision)
        value = b""
        if not get.keys_only:
            mine = {w.key: w.value for w in batch.request.writes if isinstance(w, Put)}
            value = mine[compare.key] if ours else b"other"
        ranges.append((KeyValue(compare.key, value, 1, revision),) if revision else ())
    return outcome_of(batch, TxnAnswer(False, 80, tuple(ranges)), in_doubt=in_doubt)


def test_given_the_fence_is_lost_when_judged_then_fenced_whatever_else_there_is() -> None:
    batch = filled(schema("s"), schema("t")).batch

    for found in (
        refused(batch, {"leader": 0}),
        refused(batch, {"leader": 99, "version": 50, "s": 50}),
        refused(batch, {"leader": 99, "version": 50, "s": 50}, in_doubt=True, ours=True),
    ):
        assert found == BatchOutcome(BatchVerdict.FENCED)


def test_given_compares_of_some_when_judged_then_they_alone_are_stale() -> None:
    batch = filled(schema("a"), schema("b"), schema("c")).batch

    found = refused(batch, {"b": 50})

    assert found.verdict is BatchVerdict.REFUSED
    key = str(SchemaNameKey("main", "b"))
    assert found.stale == {1: {"key": key, "expected": 0, "found": 50}}
    assert not found.has_version_moved


def test_given_a_shared_compare_when_judged_then_all_who_made_it_are_stale() -> None:
    made = [wide(name).also(reading("shared")) for name in "abc"]

    found = refused(filled(*made[:2], wide("d")).batch, {"shared": 7})

    assert found.stale.keys() == {0, 1}


def test_given_a_range_that_changed_when_judged_then_who_compared_it_is_stale() -> None:
    guarded = schema("a").while_unchanged(SEQUENCES, 30)
    batch = filled(guarded, schema("b").while_unchanged(SEQUENCES, 50)).batch
    newer = [get for get in batch.request.on_refusal if get.key == SEQUENCES.start]
    assert [(get.newer_than, get.limit, get.keys_only) for get in newer] == [
        (30, 1, True),
        (50, 1, True),
    ]

    key = bytes(SequenceKey("x"))
    ranges = tuple(
        (KeyValue(key, b"", 1, 40),)
        if compare.or_older and compare.mod_revision < 40
        else (KeyValue(compare.key, b"", 1, compare.mod_revision),)
        if compare.mod_revision and not compare.or_older
        else ()
        for compare in batch.request.compares
    )
    found = outcome_of(batch, TxnAnswer(False, 80, ranges), in_doubt=False)

    start = SEQUENCES.start.decode()
    assert found.stale == {0: {"key": start, "expected": 30, "found": 40}}


def test_given_one_range_in_both_when_joined_then_the_older_revision_counts() -> None:
    other = Range(b"__sequence/y", b"__sequence/z")
    one = Txn().while_unchanged(SEQUENCES, 7).while_unchanged(other, 5)

    assert one.also(Txn().while_unchanged(SEQUENCES, 3)).unchanged == {SEQUENCES: 3, other: 5}
    assert one.while_unchanged(SEQUENCES, 9).unchanged == one.unchanged


def test_given_the_version_moved_when_judged_then_nobody_is_stale() -> None:
    found = refused(filled(schema("a"), count("x", 1)).batch, {"version": 50})

    assert found == BatchOutcome(BatchVerdict.REFUSED, has_version_moved=True)


def test_given_doubt_when_the_witness_is_ours_then_done_at_its_revision() -> None:
    for batch, moved in (
        (filled(schema("s")).batch, {"version": 77, "s": 77}),
        (filled(count("x", 1)).batch, {"x": 77}),
    ):
        assert refused(batch, moved, in_doubt=True, ours=True) == BatchOutcome(
            BatchVerdict.DONE, 77
        )
        assert refused(batch, moved, in_doubt=True).verdict is BatchVerdict.REFUSED
        assert refused(batch, moved, ours=True).verdict is BatchVerdict.REFUSED


def test_given_doubt_when_the_witness_never_moved_then_its_value_proves_nothing() -> None:
    batch = filled(count("x", 1, seen=3).also(reading("y"))).batch

    assert refused(batch, {"y": 50}, in_doubt=True, ours=True).verdict is BatchVerdict.REFUSED


def test_given_a_deletion_as_the_only_witness_when_it_is_gone_then_done() -> None:
    batch = filled(Txn().expecting(SequenceKey("x"), 3).delete(SequenceKey("x"))).batch
    answer = TxnAnswer(False, 80, ((KeyValue(HEAD.fence.key, b"", 5, 5),), ()))

    assert outcome_of(batch, answer, in_doubt=True) == BatchOutcome(BatchVerdict.DONE, 80)
