"""Every stored format, byte for byte, against the files in tests/golden/keys.

A format is added with its file, by hand; a file is never changed once a server has written it.
"""

import json
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keys.key import Key
from keys.model.families import FAMILIES
from keys.model.history_dictionary import DICTIONARY, TEMPLATES
from keys.model.keyspace_page import PATH, keyspace_page
from keys.model.log import CatalogUpdate, CatalogUpdateKey
from keys.model.records import IdempotencyKey, ProcedureHistory, ProcedureHistoryKey
from keys.model.snapshot.snapshots import SnapshotPartKey
from keys.model.staging.parts import BatchPartKey
from keys.model.tables import TableInfo
from keys.packed import JSON_BYTES_MAX, Templates
from keys.templated import NAME, NUMBER, own_of, restore, shorten
from keys.value import NewerFormat, StoredModel, decode, encode
from metasrv_base.errors import Corrupt
from tests.keys.model.plain import plain
from tests.keys.model.samples import INFO, SAMPLES
from tests.keys.model.staged_samples import REF
from tests.keys.model.strategies import values_of

GOLDEN = Path(__file__).parents[2] / "golden" / "keys"
FILES = {type(key): GOLDEN / f"{type(key).__name__.removesuffix('Key')}.json" for key, _ in SAMPLES}
PACKED: dict[type[Key[Any]], tuple[str, ...]] = {
    ProcedureHistoryKey: ("ProcedureHistory.2.bin", "ProcedureHistory.3.bin"),
    IdempotencyKey: ("Idempotency.2.bin",),
    SnapshotPartKey: ("SnapshotPart.2.bin",),
    BatchPartKey: ("BatchPart.2.bin",),
}
"""Values that are stored in packings, the last of which is written; packing 1 is JSON, as others
are stored."""
DICTIONARIES_SHA256 = (
    "c41c4ca4ae65747058976f7244f747955d03e845faa6ac4cf848aa71b309ac82",
    "6a7e9348d22e5f9fedf28c114e93706e3dca504febf03b17536aeb6522ab45e2",
)

each_sample = pytest.mark.parametrize(
    ("key", "value"), SAMPLES, ids=[type(key).__name__ for key, _ in SAMPLES]
)


@each_sample
@pytest.mark.case("catalog 114")
def test_given_a_sample_when_encoded_then_it_is_the_golden_file(
    key: Key[Any], value: StoredModel
) -> None:
    assert StoredModel.pack(value) + b"\n" == FILES[type(key)].read_bytes()
    if type(key) not in PACKED:
        assert encode(value) == StoredModel.pack(value)


@each_sample
@pytest.mark.case("catalog 114")
def test_given_a_golden_file_when_decoded_then_it_is_the_sample(
    key: Key[Any], value: StoredModel
) -> None:
    raw = FILES[type(key)].read_bytes()

    assert decode(key.value_type, raw, key=str(key)) == value


def test_given_an_update_whose_entries_are_in_parts_then_it_is_of_format_4() -> None:
    key, update = next(sample for sample in SAMPLES if isinstance(sample[0], CatalogUpdateKey))
    assert isinstance(update, CatalogUpdate)
    stored = update.without_entries(REF)
    raw = (GOLDEN / "CatalogUpdate.4.json").read_bytes()

    assert encode(stored).startswith(b'{"format":4,')
    assert (encode(stored) + b"\n", decode(CatalogUpdate, raw, key=str(key))) == (raw, stored)


@pytest.mark.parametrize("family", PACKED)
def test_given_packed_golden_files_when_decoded_then_they_are_the_sample(
    family: type[Key[Any]],
) -> None:
    key, value = next(sample for sample in SAMPLES if type(sample[0]) is family)
    stored = [(GOLDEN / name).read_bytes() for name in PACKED[family]]

    assert [decode(type(value), raw, key=str(key)) for raw in stored] == [value] * len(stored)
    assert [raw[0] for raw in stored] == list(range(2, 2 + len(stored)))
    assert encode(value)[0] == stored[-1][0]


def test_given_the_dictionaries_of_packed_histories_then_stores_were_written_with_them() -> None:
    found = tuple(sha256(one).hexdigest() for one in (DICTIONARY, TEMPLATES))

    assert found == DICTIONARIES_SHA256


@pytest.mark.parametrize("family", PACKED)
def test_given_a_packed_value_when_a_part_of_it_is_lost_then_it_is_corrupt(
    family: type[Key[Any]],
) -> None:
    key, value = next(sample for sample in SAMPLES if type(sample[0]) is family)
    for raw in ((GOLDEN / name).read_bytes() for name in PACKED[family]):
        for broken in (raw[:-1], raw + b"\0", raw[:20], raw[:1], b"\1" + raw[1:]):
            with pytest.raises(Corrupt) as corrupt:
                decode(type(value), broken, key=str(key))
            assert type(corrupt.value) is Corrupt
    newest = encode(value)[0]
    with pytest.raises(NewerFormat) as newer:
        decode(type(value), bytes([newest + 1]) + encode(value)[1:], key=str(key))
    assert newer.value.facts == {"key": str(key), "format": newest + 1, "known": newest}


def test_given_a_packed_history_when_any_byte_differs_then_it_is_corrupt() -> None:
    raw = (GOLDEN / "ProcedureHistory.3.bin").read_bytes()

    for at in range(1, len(raw)):
        broken = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        with pytest.raises(Corrupt):
            decode(ProcedureHistory, broken, key="k")


def _sealed(lines: bytes) -> bytes:
    """Packing 3 of *lines*, whatever they are, with nothing set aside."""
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS, zdict=TEMPLATES)
    rest = compressor.compress(lines) + compressor.flush() + bytes(6)
    return b"\3" + zlib.crc32(rest).to_bytes(4) + rest


def test_given_a_packed_history_that_unpacks_beyond_its_bound_then_it_is_corrupt() -> None:
    plain = zlib.compressobj(zdict=DICTIONARY)
    wide = b" " * (JSON_BYTES_MAX + 1)
    bombs = {
        "inflated, packing 2": b"\2" + plain.compress(wide) + plain.flush(),
        "inflated, packing 3": _sealed(b"\n\n" + wide),
        "a long name, many times": _sealed(b"n" * 128 + b"\n\n" + NAME * (JSON_BYTES_MAX // 128)),
        "a long number, many times": _sealed(
            b"\n" + b"1" * 128 + b"\n" + NUMBER * (JSON_BYTES_MAX // 128)
        ),
    }
    for what, bomb in bombs.items():
        with pytest.raises(Corrupt):
            decode(ProcedureHistory, bomb, key=what)


texts = st.text(st.sampled_from('ab1"\\/.:-,{} \n\x01\x02\x03\u00e9'), max_size=20)
numbers = st.sampled_from([0, 7, 1_024, 1_763_721_600_000, -1_763_721_600_001, 1 << 63])
digests = st.sampled_from(
    ["0" * 16, "1" * 16, "f" * 32, "12" * 32, "a" * 36, str(UUID(int=17 << 64))]
)
regions = st.integers(0, 1 << 34).map(lambda number: str((1_024 << 32) + number))
pieces = st.sampled_from(["1763721600000", "17637", "4398046511104", "4398046", "0", "-", "a" * 16])
runs = st.lists(pieces, max_size=6).map("".join)
words = st.sampled_from(["flights", "/flights/1024"])
parts = st.one_of(texts, numbers, digests, regions, runs, words)


@given(
    found=st.recursive(parts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)),
    name=st.sampled_from(["flights", "a", "a b", "", "1", "1024"]),
    number=st.sampled_from(["1024", "1", "", "dn-1", "0x", "9" * 128]),
    at_ms=st.sampled_from([0, 1_763_721_600_000, (1 << 48) - 1]),
)
@pytest.mark.slow
def test_given_any_json_when_its_own_words_are_codes_then_it_is_restored(
    found: object, name: str, number: str, at_ms: int
) -> None:
    text, own = orjson.dumps(found), own_of(name, number, at_ms)

    short, aside = shorten(text, own)

    assert restore(short, aside, own, JSON_BYTES_MAX) == text
    assert Templates(TEMPLATES).unpack(Templates(TEMPLATES).pack(text, own)) == text


def test_given_the_samples_when_their_keys_are_written_then_they_are_the_golden_keys() -> None:
    golden = (GOLDEN / "keys.txt").read_text().splitlines()

    assert [str(key) for key, _ in SAMPLES] == golden


def test_given_the_golden_folder_then_it_holds_nothing_else() -> None:
    assert {
        *FILES.values(),
        *(GOLDEN / name for names in PACKED.values() for name in names),
        GOLDEN / "keys.txt",
        GOLDEN / "CatalogUpdate.4.json",
    } == set(GOLDEN.iterdir())
    assert {family.key for family in FAMILIES} == FILES.keys()


@each_sample
def test_given_each_stored_form_when_looked_at_without_models_then_it_is_the_json(
    key: Key[Any], value: StoredModel
) -> None:
    """The checkers of crashed lives and of the simulation look at every value so. A packing may
    leave out the format, if it is the first."""
    names = [FILES[type(key)], *(GOLDEN / name for name in PACKED.get(type(key), ()))]
    stored = [encode(value), *(path.read_bytes() for path in names)]
    expected = json.loads(StoredModel.pack(value))

    found = [{"format": 1} | plain(bytes(key), raw) for raw in stored]

    assert found == [expected] * len(stored)


@each_sample
@pytest.mark.case("catalog 116")
def test_given_a_higher_format_when_decoded_then_it_is_of_a_newer_server(
    key: Key[Any], value: StoredModel
) -> None:
    newest = type(value).newest_format
    same = json.loads(StoredModel.pack(value)) | {"format": newest + 1}
    changed = same | {"of_tomorrow": [1]}

    for stored in (same, changed):
        with pytest.raises(NewerFormat) as newer:
            decode(key.value_type, json.dumps(stored).encode(), key=str(key))
        assert newer.value.facts == {"key": str(key), "format": newest + 1, "known": newest}


def test_given_a_higher_format_inside_a_value_when_decoded_then_it_is_newer_too() -> None:
    key, update = next(
        (key, value) for key, value in SAMPLES if "entries" in value.__class__.model_fields
    )
    stored = json.loads(encode(update))
    stored["entries"][3]["info"]["format"] = TableInfo.newest_format + 1

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


@each_sample
@pytest.mark.case("catalog 117")
def test_given_a_family_then_it_says_its_format_and_each_up_to_the_newest_is_read(
    key: Key[Any], value: StoredModel
) -> None:
    stored = json.loads(StoredModel.pack(value))

    assert 1 <= stored["format"] <= type(value).newest_format
    for number in range(1, type(value).newest_format + 1):
        older = {**stored, "format": number}
        assert decode(type(value), json.dumps(older).encode(), key=str(key)).format == number
    for number in (0, -1):
        with pytest.raises(Corrupt):
            decode(type(value), json.dumps({**stored, "format": number}).encode(), key=str(key))
