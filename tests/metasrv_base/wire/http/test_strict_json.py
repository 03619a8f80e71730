"""Hostile bodies and paths (docs/robustness.md, 1-18 and 38-41): each is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv_base.errors import Refused
from metasrv_base.wire.http.strict_json import DEPTH_MAX, check_path, parse

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.badinput
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b'{"a":',
        b"{}xx",
        b"{} {}",
        b'{"name":1,"name":2}',
        b'{"x":{"name":1,"n\\u0061me":2}}',
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'"\\"' + b"[" * 200_000,
        b'"\xff"',
        b"\xef\xbb\xbf{}",
        b'"\\ud800"',
        b'{"\\udc00":1}',
        b'"\\ud800\\ud800"',
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b"-1e999",
        b"9" * 5_000,
        b"1" * 21,
        b"{'a':1}",
        b"[1,]",
        b"01",
        b'"a\nb"',
        b'"\x00"',
        '{"a":1}'.encode("utf-16"),
        b"// no\n{}",
    ],
    ids=lambda body: repr(body[:16]),
)
def test_given_a_body_that_is_not_strict_json_when_parsed_then_it_is_refused(body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        parse(body)

    assert refused.value.code == "malformed-json"
    assert len(str(refused.value.facts["reason"])) <= 100


@given(json_values)
def test_given_json_when_parsed_then_it_is_what_was_written(value: object) -> None:
    for ascii_only in (True, False):
        assert parse(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


def test_given_the_deepest_body_allowed_when_parsed_then_it_is_taken() -> None:
    deepest = b"[" * DEPTH_MAX + b"]" * DEPTH_MAX

    assert json.dumps(parse(deepest)).encode() == deepest
    with pytest.raises(Refused, match="deeper"):
        parse(b"[" + deepest + b"]")


@pytest.mark.badinput
@pytest.mark.parametrize("quoted", [b"", b'"",', b'"\\"",', b'"[{",'])
def test_given_objects_in_arrays_when_too_deep_then_refused_whatever_stands_beside_them(
    quoted: bytes,
) -> None:
    half = DEPTH_MAX // 2
    deepest = b'[{"a":' * half + b"1" + b"}]" * half

    parse(deepest)
    with pytest.raises(Refused, match="deeper"):
        parse(b"[" + quoted + deepest + b"]")


def test_given_brackets_in_strings_and_side_by_side_when_parsed_then_they_do_not_nest() -> None:
    assert parse(b'["' + b"[" * 1000 + b'"]') == ["[" * 1000]
    assert parse(b"[" + b"[]," * 1000 + b"[]]") == [[]] * 1001


def test_given_a_surrogate_pair_when_parsed_then_it_is_one_character() -> None:
    assert parse(b'"\\ud83d\\udeeb"') == "\U0001f6eb"


@pytest.mark.badinput
@pytest.mark.parametrize(
    "path",
    [
        b"/v1/a%2Fb",
        b"/v1/..%2f..%2felection",
        b"/v1/%2e%2e/x",
        b"/v1/../x",
        b"/v1/.",
        b"/v1/%5c",
        b"/v1/a\\b",
        b"/v1/%00",
        b"/v1/\x00",
        b"/v1/%0a",
        b"/v1/%7f",
        b"/v1/%ff",
        b"/v1/%c3%28",
        b"/v1/%zz",
        b"/v1/%",
        b"/v1/%4",
        b"/v1/a b",
        b"/v1/" + b"a" * 5_000,
    ],
    ids=lambda path: repr(path[:24]),
)
def test_given_a_path_that_may_mean_two_things_when_checked_then_it_is_refused(
    path: bytes,
) -> None:
    with pytest.raises(Refused, match="bad-path"):
        check_path(path)


@pytest.mark.parametrize(
    "path", [b"/", b"/v1/catalogs/main", b"/v1/a-b_c", b"/v1/%C3%A4", b"/v1/x.y", b"/v1/%252e"]
)
def test_given_a_plain_path_when_checked_then_it_passes(path: bytes) -> None:
    check_path(path)
