"""A stored value that cannot be read ends no term, is left as it is, and is reported once."""

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from keys.model.cluster import (
    CandidateKey,
    NodeKey,
    SettingKey,
    SettingRecord,
)
from keys.model.holders import HolderKey
from keys.model.records import Idempotency, IdempotencyKey, ProcedureHistoryKey, ProcedureKey
from keys.value import encode
from tests.metasrv.leadership.leading import Leading
from tests.sim.loop import SimLoop, run

NEWER = b'{"format":99,"something":"else"}'
TORN = b'{"format":1,"submission":7,"locks":[{"key":"table:9","mode":"exclusive"},{"key":"sche'
OLD_ID = "00000000-0001-7000-8000-000000000000"
RANGES: Mapping[str, bytes] = {
    str(IdempotencyKey("a" * 64)): b"__idempotency/b",
    str(ProcedureHistoryKey(OLD_ID)): b"__procedure_history/b",
    str(ProcedureKey(OLD_ID)): b"__procedure/b",
    str(SettingKey("running_max")): b"__setting/.",
    str(NodeKey("datanode", "dn-9")): b"__node/datanode/.",
    str(HolderKey("fe-9")): b"__schema_holder/.",
    str(CandidateKey("ms-9")): b"__election/candidate/.",
}
"""A key of each range that a leader reads, and a key of no family in the same range."""


@pytest.mark.parametrize("bad", [NEWER, TORN, b"", b"\xff\x00"], ids=["newer", "torn", "", "bytes"])
@pytest.mark.parametrize("key", RANGES)
def test_given_a_value_that_cannot_be_read_when_leading_then_the_term_lives_and_tells_once(
    key: str, bad: bytes
) -> None:
    async def main(loop: SimLoop) -> None:
        one = Leading(loop)
        given = {key.encode(): bad, RANGES[key]: b"{}"}

        with capture_logs() as logs:
            await one.begin(given)
            await one.clock.sleep_ms(200_000)

        assert one.ended is None
        assert one.term is not None
        assert one.term.ready.is_set()
        assert {key: one.stored().get(key) for key in given} == given
        told = [str(line["key"]) for line in logs if line["event"] == "value_unreadable"]
        told += [OLD_ID for line in logs if line["event"] == "procedure_parked"]
        if not key.startswith("__election"):  # nobody is kept from anything by those
            assert OLD_ID in told or key in told
            assert told.count(key) <= 1

    run(main, 1)


def test_given_a_bad_value_among_good_ones_when_time_is_over_then_the_others_go() -> None:
    async def main(loop: SimLoop) -> None:
        known = Idempotency(procedure=OLD_ID, fingerprint="f", at_ms=1)
        good = {
            bytes(IdempotencyKey(letter * 64)): encode(known.model_copy(update={"at_ms": 1}))
            for letter in "0123"
        }
        bad = {bytes(IdempotencyKey("1" * 63 + "0")): NEWER}
        one = Leading(loop)

        await one.begin({**good, **bad})
        await one.clock.sleep_ms(200_000)

        left = {key for key in one.stored() if key.startswith(b"__idempotency/")}
        assert left == set(bad)

    run(main, 1)


@pytest.mark.parametrize("bad", [NEWER, b"{}"], ids=["newer", "empty"])
def test_given_switches_that_cannot_be_read_then_they_count_as_thrown(bad: bytes) -> None:
    async def main(loop: SimLoop) -> None:
        other = SettingRecord(
            name="running_max", value=3, version=1, changed_by="a", changed_at_ms=1
        )
        one = Leading(loop)
        given = {
            b"__setting/maintenance": bad,
            b"__setting/procedures": bad,
            bytes(SettingKey("running_max")): encode(other),
        }

        await one.begin(given)
        await one.clock.sleep_ms(1_000)

        assert one.term is not None
        settings = one.term.settings
        assert settings.maintenance is not None
        assert settings.values.procedures.paused
        assert settings.values.running_max == 3
        assert not one.term.manager.gate.is_open

    run(main, 1)
