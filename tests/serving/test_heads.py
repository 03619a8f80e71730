"""Heads: what is refused, as what, and where the body of the others ends."""

import pytest

from metasrv_base.errors import Refused
from serving.heads import CHUNKED, body_bytes, check_growing, without_upgrade
from tests.serving.sockets import request

LOCAL = frozenset({"127.0.0.1", "localhost", "[::1]"})
HOST = "Host: 127.0.0.1:80"


@pytest.mark.parametrize(
    ("lines", "length"),
    [
        ((HOST,), 0),
        (("host: LOCALHOST", "Content-Length:  17 "), 17),
        (("Host: [::1]:9", "Transfer-Encoding: Chunked"), CHUNKED),
        ((HOST, "x-latin: caf\xe9", "empty:"), 0),
    ],
)
def test_given_a_plain_head_then_its_body_is_known(lines: tuple[str, ...], length: int) -> None:
    assert body_bytes(request("POST /v1?a=b HTTP/1.1", *lines), LOCAL) == length


@pytest.mark.parametrize(
    ("first", "lines"),
    [
        ("GET / HTTP/1.1", ()),
        ("GET / HTTP/1.1", (HOST, HOST)),
        ("GET / HTTP/1.1", ("Host: evil.example",)),
        ("GET / HTTP/1.1", ("Host: 127.0.0.1:80@evil",)),
        ("GET / HTTP/1.1", ("Host : 127.0.0.1",)),
        ("GET / HTTP/1.1", (HOST, " folded")),
        ("GET / HTTP/1.1", (HOST, "a\0: b")),
        ("GET / HTTP/1.1", (HOST, "a: b\0")),
        ("GET / HTTP/1.1", (HOST, "a: b\rc: d")),
        ("GET / HTTP/1.1", (HOST, "no colon")),
        ("GET / HTTP/1.1", (HOST, ": no name")),
        ("GET / HTTP/2.0", (HOST,)),
        ("GET  / HTTP/1.1", (HOST,)),
        ("get / HTTP/1.1", (HOST,)),
        ("GET /", (HOST,)),
        ("GET http://127.0.0.1/ HTTP/1.1", (HOST,)),
        ("OPTIONS * HTTP/1.1", (HOST,)),
        ("CONNECT /x HTTP/1.1", (HOST,)),
        ("POST / HTTP/1.1", (HOST, "Content-Length: 1", "Transfer-Encoding: chunked")),
        ("POST / HTTP/1.1", (HOST, "Content-Length: 1", "Content-Length: 2")),
        ("POST / HTTP/1.1", (HOST, "Content-Length: 1", "content-length: 1")),
        ("POST / HTTP/1.1", (HOST, "Content-Length: 1, 1")),
        ("POST / HTTP/1.1", (HOST, "Content-Length: +1")),
        ("POST / HTTP/1.1", (HOST, "Content-Length: -1")),
        ("POST / HTTP/1.1", (HOST, "Content-Length: 0x1")),
        ("POST / HTTP/1.1", (HOST, "Content-Length: 9999999999999999")),
        ("POST / HTTP/1.1", (HOST, "Transfer-Encoding: gzip, chunked")),
        ("POST / HTTP/1.1", (HOST, "Transfer-Encoding: chunked", "Transfer-Encoding: identity")),
        ("POST / HTTP/1.0", ("Transfer-Encoding: chunked",)),
    ],
)
def test_given_what_two_parsers_read_differently_then_it_is_refused(
    first: str, lines: tuple[str, ...]
) -> None:
    """Rows 28 and 29."""
    with pytest.raises(Refused) as refused:
        body_bytes(request(first, *lines), LOCAL)

    assert refused.value.code == "malformed-request"


def test_given_a_bare_line_feed_then_the_head_is_refused_before_its_end() -> None:
    for head in (b"GET / HTTP/1.1\n", b"GET / HTTP/1.1\r\nHost: a\n", b"\n"):
        with pytest.raises(Refused, match="CR LF"):
            check_growing(head)


def test_given_too_much_of_a_head_then_its_end_is_not_waited_for() -> None:
    with pytest.raises(Refused) as refused:
        check_growing(b"GET / HTTP/1.1\r\nx: " + b"y" * 40_000)

    assert refused.value.code == "headers-too-large"


def test_given_too_many_headers_then_refused() -> None:
    with pytest.raises(Refused) as refused:
        body_bytes(request("GET / HTTP/1.1", HOST, *["a: b"] * 100), LOCAL)

    assert refused.value.code == "headers-too-large"


def test_given_a_path_in_other_bytes_then_it_is_a_bad_path() -> None:
    for target in ("/caf\xe9", "/a#b", "/" + "x" * 3_000):
        with pytest.raises(Refused) as refused:
            body_bytes(request(f"GET {target} HTTP/1.1", HOST), LOCAL)

        assert refused.value.code == "bad-path"


def test_given_a_server_for_everybody_then_any_name_is_its_own() -> None:
    assert body_bytes(request("GET / HTTP/1.1", "Host: metasrv.example:80"), None) == 0


def test_given_an_offer_to_upgrade_then_it_is_not_heard() -> None:
    head = request("GET / HTTP/1.1", HOST, "UPGRADE: h2c", "Connection: Upgrade")

    assert without_upgrade(head) == request("GET / HTTP/1.1", HOST, "Connection: Upgrade")
