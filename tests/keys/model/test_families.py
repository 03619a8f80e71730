"""Keys: strict, disjoint, and the inverse of what we write."""

from dataclasses import fields, replace
from typing import Any, cast, get_type_hints

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keys.key import SEGMENTS, Key, prefix_end
from keys.model.families import FAMILIES, KeyFamily, family_of, parse_any
from keys.model.tables import DatanodeTableKey, TableInfoKey, TableNameKey
from metasrv_base.errors import Corrupt
from tests.keys.model.samples import SAMPLES

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def keys_of(family: KeyFamily) -> st.SearchStrategy[Key[Any]]:
    types = get_type_hints(family.key)
    parts = [
        st.from_regex(SEGMENTS[field.name], fullmatch=True)
        if types[field.name] is str
        else st.integers(min_value=0, max_value=10**20 - 1)
        for field in fields(cast(Any, family.key))
    ]
    return st.builds(family.key, *parts)


any_key = st.sampled_from(FAMILIES).flatmap(keys_of)


@given(key=any_key)
def test_given_any_key_when_parsed_then_it_is_itself_and_only_its_family_claims_it(
    key: Key[Any],
) -> None:
    assert parse_any(bytes(key)) == key
    assert [family.key for family in FAMILIES if family.claims(bytes(key))] == [type(key)]


@given(raw=st.binary(max_size=60))
@pytest.mark.case("greptime 56")
def test_given_any_bytes_when_parsed_then_they_are_what_we_write_or_corrupt(raw: bytes) -> None:
    for head in (b"", *(family.head for family in FAMILIES)):
        try:
            key = parse_any(head + raw)
        except Corrupt:
            continue
        assert bytes(key) == head + raw


def test_given_two_families_when_compared_then_a_key_of_one_is_of_no_other() -> None:
    for key, _ in SAMPLES:
        claimed = [family.key for family in FAMILIES if family.claims(bytes(key))]
        assert claimed == [type(key)]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"__table_info",
        b"__table_info/",
        b"__table_info/01024",
        b"__table_info/-1",
        b"__table_info/1024/",
        b"__table_info/1024\n",
        b"__table_info/abc",
        b"__table_info/" + b"9" * 5_000,
        b"__table_info/\xd9\xa1",
        b"__table_name/main/public/a\n",
        b"__table_name/main//t",
        b"__table_name/main/public/t\xff",
        b"__table_name/main/public/1t",
        b"__catalog/version/",
        b"__catalog/update/17",
        b"__catalog/snapshot/17/000000",
        b"__catalog/snapshot/00000000000000000017/0",
        b"__catalog/snapshot/versions",
        b"__catalog/snapshot/",
        b"__cluster/",
        b"__node/robot/dn-1",
        b"__procedure/019AA5D3-1C00-7ABC-8DEF-0123456789AB",
        b"__unheard_of/1",
        b"/__cluster",
    ],
)
@pytest.mark.case("greptime 56")
def test_given_a_malformed_key_when_parsed_then_it_is_corrupt(raw: bytes) -> None:
    with pytest.raises(Corrupt):
        parse_any(raw)


@pytest.mark.parametrize("name", ["", "a/b", "a\n", "..", "1a", "ä", "a" * 129, "a\0", "a\xff"])
def test_given_an_illegal_segment_when_a_key_is_made_then_it_is_our_own_mistake(name: str) -> None:
    with pytest.raises(ValueError, match="TableNameKey"):
        TableNameKey("main", "public", name)


@given(key=any_key, data=st.data())
def test_given_any_key_when_a_part_gets_a_slash_or_is_negative_then_no_other_key_is_made(
    key: Key[Any], data: st.DataObject
) -> None:
    parts = [field.name for field in fields(cast(Any, key))]
    assume(parts)
    name = data.draw(st.sampled_from(parts))
    part = getattr(key, name)
    if isinstance(part, int):
        wrong: int | str = -1 - part
    else:
        place = data.draw(st.integers(0, len(part)))
        wrong = f"{part[:place]}/{part[place:]}"

    with pytest.raises(ValueError, match=type(key).__name__):
        replace(cast(Any, key), **{name: wrong})


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        (b"a", b"b"),
        (b"a/", b"a0"),
        (b"a\xff", b"b"),
        (b"a\xff\xff", b"b"),
        (b"\xff", b"\0"),
        (b"", b"\0"),
        (b"a\xfe", b"a\xff"),
    ],
)
def test_given_a_prefix_when_its_end_is_taken_then_it_is_the_first_key_above(
    prefix: bytes, end: bytes
) -> None:
    assert prefix_end(prefix) == end


@given(prefix=st.binary(min_size=1, max_size=4), key=st.binary(max_size=6))
def test_given_a_prefix_when_its_range_is_taken_then_it_holds_exactly_its_keys(
    prefix: bytes, key: bytes
) -> None:
    end = prefix_end(prefix)

    in_range = prefix <= key and (end == b"\0" or key < end)

    assert in_range == key.startswith(prefix)


def test_given_leading_parts_when_a_range_is_taken_then_only_their_keys_are_in_it() -> None:
    keys = DatanodeTableKey.under("dn-1")

    assert keys.start <= bytes(DatanodeTableKey("dn-1", 5)) < keys.end
    assert not keys.start <= bytes(DatanodeTableKey("dn-10", 5)) < keys.end
    assert TableInfoKey.under().start == b"__table_info/"


@each_family
def test_given_a_family_then_it_has_a_sample(family: KeyFamily) -> None:
    assert [family_of(bytes(key)) for key, _ in SAMPLES].count(family.key) == 1
