"""Checks of input: strict JSON (RFC 8259), plain paths, bounded sizes. Pure; the shells apply them.

Python's own parser takes a key twice, NaN, 1e999, lone surrogates and nesting until it falls over;
each of them has changed a request's meaning or crashed a server somewhere.
"""

import json
import re
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes

from metasrv_base.errors import Refused

BODY_BYTES_MAX = 1 << 20
"""Limit of a JSON body in bytes: a table of 1,024 columns and regions takes a tenth of it."""
ARROW_BATCH_BYTES_MAX = 64 << 20
"""Limit of one record batch in an Arrow stream, in bytes."""
HEADER_BYTES_MAX = 32 << 10
PATH_BYTES_MAX = 2048
"""Five names of 128 bytes and the words between, with room."""
BODY_TIMEOUT_MS = 10_000
"""Limit of the time in which a body must arrive."""
DEPTH_MAX = 32
"""Limit of the nesting of arrays and objects; the deepest body in use has six levels."""
INTEGER_DIGITS_MAX = 20
"""Enough for 64 bits, signed or not; longer ones cost quadratic time to convert."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_NO_STRUCTURE = bytes(set(range(256)) - set(b'"\\[]{}'))
_AS_BRACES = bytes.maketrans(b"[]", b"{}")
_AS_ZEROS = bytes(0x30 if chr(byte).isdecimal() and byte < 128 else 0x20 for byte in range(256))
_TOO_LONG = b"0" * (INTEGER_DIGITS_MAX + 1)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_BOM = b"\xef\xbb\xbf"
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_FORBIDDEN_ESCAPE = re.compile(rb"%(?:2[eEfF]|5[cC]|[01][0-9A-Fa-f]|7[fF])")
_FORBIDDEN_BYTE = re.compile(rb"[\x00-\x20\x7f\\]")
_DOT_SEGMENT = re.compile(rb"(?:^|/)\.\.?(?:/|$)")


def parse(body: bytes) -> Any:
    """The value of a JSON text. Raises Refused `malformed-json` with `reason`."""
    if body.startswith(_BOM):
        _malformed("it begins with a byte order mark")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused("malformed-json", at=error.start, reason="it is not UTF-8") from None
    if body.count(b"[") + body.count(b"{") > DEPTH_MAX:
        _check_depth(body)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=_integer if _TOO_LONG in body.translate(_AS_ZEROS) else None,
            parse_float=_float,
        )
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode())
        raise Refused("malformed-json", at=offset, reason=error.msg.lower()) from None
    if _SURROGATE.search(body):
        _check_surrogates(value)
    return value


def check_path(raw_path: bytes) -> None:
    """Whether a path, as sent and without its query, means one thing to everybody.

    Raises Refused `bad-path`.
    """
    if len(raw_path) > PATH_BYTES_MAX:
        raise Refused("bad-path", found=f"more than {PATH_BYTES_MAX} bytes")
    if _BAD_ESCAPE.search(raw_path):
        raise Refused("bad-path", found="a % that escapes nothing")
    if match := _FORBIDDEN_ESCAPE.search(raw_path):
        raise Refused("bad-path", found=f"{match[0].decode()}, which is not allowed in a name")
    if _FORBIDDEN_BYTE.search(raw_path):
        raise Refused("bad-path", found="a space, a backslash or a control character")
    if _DOT_SEGMENT.search(raw_path):
        raise Refused("bad-path", found="a . or .. segment")
    try:
        unquote_to_bytes(raw_path).decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("bad-path", found="bytes that are not UTF-8") from None


def check_query(raw: bytes) -> None:
    """Whether a query, as sent, says each thing once.

    Of a parameter that stands twice, one server takes the first, another the last. Raises Refused
    `invalid-request`.
    """
    names = [part.partition(b"=")[0].replace(b"+", b" ") for part in raw.split(b"&") if part]
    earlier: set[bytes] = set()
    for name in map(unquote_to_bytes, names):
        if name in earlier:
            text = name.decode("utf-8", "replace")
            raise Refused("invalid-request", expected=f"{text} once in the query")
        earlier.add(name)
    try:
        unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("invalid-request", expected="UTF-8 in the query") from None


def _check_depth(body: bytes) -> None:
    """Counts brackets outside strings, so that no parser recurses into a hostile body."""
    if _is_shallow(body.translate(_AS_BRACES, _NO_STRUCTURE)):
        return
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", body)):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > DEPTH_MAX:
            _malformed(f"it is nested deeper than {DEPTH_MAX}")


def _is_shallow(structure: bytes) -> bool:
    """Whether quotes and brackets alone show it: level by level, from within, nothing is left.

    The cheap way for large bodies of plain strings, such as heartbeats; of others it says no.
    """
    structure = structure.replace(b'""', b"")
    for _ in range(DEPTH_MAX):
        if not structure:
            return True
        structure = structure.replace(b"{}", b"")
    return not structure


def _check_surrogates(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        _malformed("it holds half a surrogate pair")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        _malformed("it holds a key twice")
    return members


def _constant(text: str) -> NoReturn:
    _malformed(f"{text} is not JSON")


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > INTEGER_DIGITS_MAX:
        _malformed(f"it holds an integer of more than {INTEGER_DIGITS_MAX} digits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        _malformed("it holds a number beyond 64-bit floats")
    return number


def _malformed(reason: str) -> NoReturn:
    raise Refused("malformed-json", reason=reason)
