"""One request's head as it may come in: RFC 9112, with nothing that two parsers read differently.

Pure. A proxy and a server that disagree about where a request ends can be made to answer a request
that nobody sent (RFC 9112, 11.2), so whatever could be read in two ways is refused.
"""

import re
from collections.abc import Collection

from metasrv_base.errors import Refused
from metasrv_base.wire.http.strict_json import HEADER_BYTES_MAX, PATH_BYTES_MAX

CHUNKED = -1
HEADERS_MAX = 100
"""Lines of a head; our own clients send ten."""
ENDS = b"\r\n\r\n"

_HEAD = re.compile(
    rb"(?!CONNECT )[A-Z]{1,16} (?P<target>[^\s\x00-\x20\x7f]++) HTTP/1\.(?P<minor>[01])\r\n"
    rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[\t\x20-\x7e\x80-\xff]*+\r\n)*+\r\n"
)
_FRAMING = re.compile(rb"\r\n(host|content-length|transfer-encoding):[ \t]*+([^\r]*+)", re.I)
_UPGRADE = re.compile(rb"\r\nupgrade:[^\r]*+", re.I)
_LENGTH = re.compile(rb"[0-9]{1,15}")
_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::[0-9]{1,5})?")


def body_bytes(head: bytes, hosts: Collection[str] | None) -> int:
    """Returns the length of the body that follows *head*, its empty line included; or CHUNKED.

    *hosts*: the names by which this server may be addressed, in small letters; None: any. A page of
    a foreign site whose name was made to lead to this machine (DNS rebinding) sends its own name.

    Raises Refused `malformed-request`, `headers-too-large`, `bad-path`.
    """
    if head.count(b"\r\n") > HEADERS_MAX + 2:
        raise Refused("headers-too-large", reason=f"there are more than {HEADERS_MAX}")
    match = _HEAD.fullmatch(head)
    if match is None:
        raise _malformed("its head is not that of an HTTP/1.1 request")
    _check_target(match["target"])
    fields: dict[bytes, bytes] = {}
    for name, value in _FRAMING.findall(head):
        if name.lower() in fields:
            raise _malformed(f"it has more than one {name.decode()}")
        fields[name.lower()] = value.rstrip(b" \t")
    old = match["minor"] == b"0"
    _check_host(fields.get(b"host"), old, hosts)
    return _framing(fields.get(b"content-length"), fields.get(b"transfer-encoding"), old)


def without_upgrade(head: bytes) -> bytes:
    """An offer to change the protocol is declined by not being heard (RFC 9110, 7.8); a parser that
    hears it takes what follows for another protocol's."""
    return _UPGRADE.sub(b"", head)


def check_growing(head: bytes) -> None:
    """Checks a head whose end has not arrived.

    Raises Refused `headers-too-large`, or `malformed-request` for a line that ends with a bare LF:
    the end of such a head would never come.
    """
    if len(head) > HEADER_BYTES_MAX:
        raise Refused("headers-too-large", limit_bytes=HEADER_BYTES_MAX)
    if head.count(b"\n") != head.count(b"\r\n"):
        raise _malformed("a line of its head does not end with CR LF")


def _check_target(target: bytes) -> None:
    if not target.startswith(b"/"):
        raise _malformed("its target is not a path")
    path = target.partition(b"?")[0]
    if len(path) > PATH_BYTES_MAX:
        raise Refused("bad-path", found=f"more than {PATH_BYTES_MAX} bytes")
    if b"#" in target or not target.isascii():
        raise Refused("bad-path", found="a # or bytes that are not ASCII; escape them")


def _check_host(host: bytes | None, old: bool, hosts: Collection[str] | None) -> None:
    if host is None:
        if not old:
            raise _malformed("it has no Host")
        return
    match = _HOST.fullmatch(host)
    if match is None:
        raise _malformed("its Host is not a name or an address")
    if hosts is not None and match[1].decode().lower() not in hosts:
        raise _malformed("its Host is not one of this server's")


def _framing(length: bytes | None, coding: bytes | None, old: bool) -> int:
    if coding is not None:
        if length is not None:
            raise _malformed("it has both Content-Length and Transfer-Encoding")
        if old or coding.lower() != b"chunked":
            raise _malformed("its Transfer-Encoding is not chunked")
        return CHUNKED
    if length is None:
        return 0
    if not _LENGTH.fullmatch(length):
        raise _malformed("its Content-Length is not a number")
    return int(length)


def _malformed(reason: str) -> Refused:
    return Refused("malformed-request", reason=reason)
