"""Every stored format, byte for byte, against the files in tests/golden/keys.

A format is added with its file, by hand; a file is never changed once a server has written it.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from base.errors import Corrupt
from keys.families import FAMILIES
from keys.history_dictionary import DICTIONARY
from keys.key import Key
from keys.keyspace_page import PATH, keyspace_page
from keys.packed import JSON_BYTES_MAX, PACKING, Deflated
from keys.records import IdempotencyKey, ProcedureHistory, ProcedureHistoryKey
from keys.value import NewerFormat, StoredModel, decode, encode
from tests.keys.samples import INFO, SAMPLES
from tests.keys.strategies import values_of

GOLDEN = Path(__file__).parent.parent / "golden" / "keys"
FILES = {type(key): GOLDEN / f"{type(key).__name__.removesuffix('Key')}.json" for key, _ in SAMPLES}
PACKED: dict[type[Key[Any]], str] = {
    ProcedureHistoryKey: "ProcedureHistory.2.bin",
    IdempotencyKey: "Idempotency.2.bin",
}
"""Values that are stored in packing 2; in packing 1 they are JSON, as all others."""
DICTIONARY_SHA256 = "c41c4ca4ae65747058976f7244f747955d03e845faa6ac4cf848aa71b309ac82"

each_sample = pytest.mark.parametrize(
    ("key", "value"), SAMPLES, ids=[type(key).__name__ for key, _ in SAMPLES]
)


@each_sample
def test_given_a_sample_when_encoded_then_it_is_the_golden_file(
    key: Key[Any], value: StoredModel
) -> None:
    assert StoredModel.pack(value) + b"\n" == FILES[type(key)].read_bytes()
    if type(key) not in PACKED:
        assert encode(value) == StoredModel.pack(value)


@each_sample
def test_given_a_golden_file_when_decoded_then_it_is_the_sample(
    key: Key[Any], value: StoredModel
) -> None:
    raw = FILES[type(key)].read_bytes()

    assert decode(key.value_type, raw, key=str(key)) == value


@pytest.mark.parametrize("family", PACKED)
def test_given_a_packed_golden_file_when_decoded_then_it_is_the_sample(
    family: type[Key[Any]],
) -> None:
    key, value = next(sample for sample in SAMPLES if type(sample[0]) is family)
    raw = (GOLDEN / PACKED[family]).read_bytes()

    assert decode(type(value), raw, key=str(key)) == value
    assert encode(value)[0] == raw[0] == PACKING


def test_given_the_dictionary_of_packed_histories_then_it_is_what_stores_were_written_with() -> (
    None
):
    assert sha256(DICTIONARY).hexdigest() == DICTIONARY_SHA256


@pytest.mark.parametrize("family", PACKED)
def test_given_a_packed_value_when_a_part_of_it_is_lost_then_it_is_corrupt(
    family: type[Key[Any]],
) -> None:
    key, value = next(sample for sample in SAMPLES if type(sample[0]) is family)
    raw = encode(value)

    for broken in (raw[:-1], raw + b"\0", raw[:20], raw[:1], b"\1" + raw[1:]):
        with pytest.raises(Corrupt) as corrupt:
            decode(type(value), broken, key=str(key))
        assert type(corrupt.value) is Corrupt
    with pytest.raises(NewerFormat) as newer:
        decode(type(value), b"\3" + raw[1:], key=str(key))
    assert newer.value.facts == {"key": str(key), "format": 3, "known": 2}


def test_given_a_packed_history_that_unpacks_beyond_its_bound_then_it_is_corrupt() -> None:
    bomb = Deflated(DICTIONARY).pack(b" " * (JSON_BYTES_MAX + 1))

    with pytest.raises(Corrupt):
        decode(ProcedureHistory, bomb, key="k")


def test_given_the_samples_when_their_keys_are_written_then_they_are_the_golden_keys() -> None:
    golden = (GOLDEN / "keys.txt").read_text().splitlines()

    assert [str(key) for key, _ in SAMPLES] == golden


def test_given_the_golden_folder_then_it_holds_nothing_else() -> None:
    assert {
        *FILES.values(),
        *(GOLDEN / name for name in PACKED.values()),
        GOLDEN / "keys.txt",
    } == set(GOLDEN.iterdir())
    assert {family.key for family in FAMILIES} == FILES.keys()


@each_sample
def test_given_a_higher_format_when_decoded_then_it_is_of_a_newer_server(
    key: Key[Any], value: StoredModel
) -> None:
    same = json.loads(StoredModel.pack(value)) | {"format": 2}
    changed = same | {"of_tomorrow": [1]}

    for stored in (same, changed):
        with pytest.raises(NewerFormat) as newer:
            decode(key.value_type, json.dumps(stored).encode(), key=str(key))
        assert newer.value.facts == {"key": str(key), "format": 2, "known": 1}


def test_given_a_higher_format_inside_a_value_when_decoded_then_it_is_newer_too() -> None:
    key, update = next(
        (key, value) for key, value in SAMPLES if "entries" in value.__class__.model_fields
    )
    stored = json.loads(encode(update))
    stored["entries"][3]["info"]["format"] = 2

    with pytest.raises(NewerFormat):
        decode(key.value_type, json.dumps(stored).encode(), key=str(key))


@each_sample
def test_given_a_field_nobody_knows_when_decoded_then_it_is_corrupt(
    key: Key[Any], value: StoredModel
) -> None:
    stored = json.loads(StoredModel.pack(value)) | {"of_tomorrow": 1}

    with pytest.raises(Corrupt) as corrupt:
        decode(key.value_type, json.dumps(stored).encode(), key=str(key))

    assert type(corrupt.value) is Corrupt


@pytest.mark.parametrize(
    "change",
    [
        {"table_id": "1024"},
        {"table_id": 1024.0},
        {"table_id": True},
        {"table_id": None},
        {"format": 0},
        {"format": "1"},
        {"columns": {}},
        {"options": {"a": 1}},
        {"partition": {"by": "magic", "columns": [1]}},
    ],
    ids=str,
)
def test_given_a_value_we_would_not_write_when_decoded_then_it_is_corrupt(
    change: dict[str, Any],
) -> None:
    stored = json.loads(encode(INFO)) | change

    with pytest.raises(Corrupt):
        decode(type(INFO), json.dumps(stored).encode(), key="k")


@each_sample
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
@pytest.mark.case("greptime 57")
def test_given_any_value_when_encoded_then_it_is_decoded_to_itself(
    key: Key[Any], value: StoredModel, data: st.DataObject
) -> None:
    drawn = data.draw(values_of(type(value)))

    assert decode(key.value_type, encode(drawn), key=str(key)) == drawn


@given(raw=st.binary(max_size=40))
def test_given_any_bytes_when_decoded_then_nothing_but_corrupt_comes(raw: bytes) -> None:
    for key, _ in SAMPLES:
        with pytest.raises(Corrupt):
            decode(key.value_type, raw, key=str(key))


def test_given_the_families_then_the_page_of_the_key_space_is_up_to_date() -> None:
    page = (GOLDEN.parent.parent.parent / PATH).read_text()

    assert page == keyspace_page()
