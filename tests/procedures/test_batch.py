"""Sealing a change and judging its answer: pure."""

from dataclasses import replace
from typing import Any

import pytest

from base.errors import Refused
from keys.batch import Line, Verdict, judge, seal
from keys.catalogs import SchemaInfo
from keys.cluster import Sequence, SequenceKey
from keys.kv import Answer, Compare, KeyValue, Put
from keys.log import CatalogUpdateKey, CatalogVersionKey, SchemaCreated
from keys.txn import Txn
from tests.procedures.line import count, schema

LINE = Line(Compare(b"__election/leader", 5), 3, 9, 1_000, 40)


def test_given_metadata_when_sealed_then_version_log_and_time_are_filled_in() -> None:
    batch = seal(LINE, schema("s"), "p", 500)

    assert (batch.stamp.catalog_version, batch.stamp.submission) == (4, 41)
    assert batch.stamp.at_ms == 1_001  # a clock that went back does not turn the log back
    assert Compare(bytes(CatalogVersionKey()), 9) in batch.request.compares
    assert LINE.fence == batch.request.compares[0]
    written = {write.key for write in batch.request.writes}
    assert {bytes(CatalogVersionKey()), bytes(CatalogUpdateKey(4))} < written
    assert batch.line_after(12) == Line(LINE.fence, 4, 12, 1_001, 41)


def test_given_no_metadata_when_sealed_then_the_log_is_left_alone() -> None:
    batch = seal(LINE, count("x", 1), None, 5_000)

    assert (batch.stamp.catalog_version, batch.updates) == (None, ())
    assert batch.line_after(12) == replace(LINE, submission=41)


def test_given_a_change_without_a_witness_when_sealed_then_it_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        seal(LINE, Txn().expecting(SequenceKey("x"), 3), None, 1)


def test_given_a_change_that_is_too_large_when_sealed_then_refused_with_the_numbers() -> None:
    txn = Txn()
    for number in range(127):
        txn = txn.expecting(SequenceKey(f"s{number}"), 0)
    wide = txn.put(SequenceKey("s0"), Sequence(next=1))
    long = schema("s" * 100).log(
        *(
            SchemaCreated(
                info=SchemaInfo(
                    schema_id=n,
                    catalog="main",
                    name="x",
                    options={"a": "b" * 9_000},
                    created_at_ms=1,
                )
            )
            for n in range(200)
        )
    )

    for one in (wide, long):
        with pytest.raises(Refused) as refused:
            seal(LINE, one, None, 1)
        assert refused.value.code == "ddl-too-large"
        assert {"operations", "bytes"} <= refused.value.facts.keys()


def refusal(txn: Txn, **found: int) -> Verdict:
    """The verdict where the named compares found another revision; `witness`: ours is in place."""
    batch = seal(LINE, txn, None, 1)
    ours = found.pop("witness", 0)
    unsettled = bool(found.pop("unsettled", 0))
    ranges = []
    for compare in batch.request.compares:
        name = compare.key.decode().rsplit("/", 1)[-1]
        revision = found.get(name, compare.mod_revision)
        ranges.append(kept(compare.key, b"", revision))
    key = batch.request.on_refusal[-1].key
    value = next(w.value for w in batch.request.writes if isinstance(w, Put) and w.key == key)
    ranges.append(kept(key, value if ours else b"other", 77))
    verdict, _ = judge(batch, Answer(False, 80, tuple(ranges)), unsettled=unsettled)
    return verdict


def kept(key: bytes, value: bytes, revision: int) -> tuple[Any, ...]:
    return (KeyValue(key, value, 1, revision),) if revision else ()


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ({"leader": 0}, Verdict.FENCED),
        ({"leader": 99, "s": 50, "version": 50}, Verdict.FENCED),
        ({"leader": 99, "witness": 1, "unsettled": 1, "s": 50}, Verdict.FENCED),
        ({"version": 50}, Verdict.RENUMBER),
        ({"version": 50, "s": 50}, Verdict.STALE),
        ({"s": 50}, Verdict.STALE),
        ({"s": 50, "version": 50, "witness": 1, "unsettled": 1}, Verdict.DONE),
        ({"s": 50, "witness": 1}, Verdict.STALE),
    ],
)
def test_given_a_refusal_when_judged_then_what_failed_says_which(
    found: dict[str, int], verdict: Verdict
) -> None:
    assert refusal(schema("s"), **found) is verdict
