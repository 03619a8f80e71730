"""Addresses that a program of ours may have."""

import pytest

from metasrv_base.wire.http.addresses import (
    SERVERS_MAX,
    is_base_url,
    may_be_ours,
    own_url,
    servers_to_ask,
)


@pytest.mark.parametrize(
    "url",
    [
        "http://dn-1:9000",
        "https://dn_1.rack-2.example.:443/",
        "http://127.0.0.1:9000",
        "http://localhost:9000",
        "http://10.0.0.7:9000",
        "http://[::1]:9000",
        "http://[fd00::7]:9000",
    ],
)
def test_given_where_a_node_can_be_then_it_is_taken(url: str) -> None:
    assert is_base_url(url)


@pytest.mark.case("input 89")
@pytest.mark.parametrize(
    "url",
    [
        "http://0.0.0.0:9000",
        "http://[::]:9000",
        "http://169.254.169.254:80",
        "http://[fe80::1]:80",
        "http://[fe80::1%25eth0]:80",
        "http://[::ffff:127.0.0.1]:80",
        "http://[2002:7f00:1::]:80",
        "http://224.0.0.1:80",
        "http://255.255.255.255:80",
        "http://2130706433:80",
        "http://0x7f.1:80",
        "http://127.1:80",
        "http://127.0.0.01:80",
        "http://host.1:80",
        "http://me@host:80",
        "http://host",
        "http://host:0",
        "http://host:65536",
        "http://host:80/path",
        "http://host:80?query",
        "http://a b:80",
        "http://:80",
        "http://h\u00f6st:80",
        "ftp://host:80",
        "host:80",
        f"http://{'a.' * 200}:80",
        f"http://{'a' * 64}:80",
    ],
)
def test_given_where_no_node_can_be_then_it_is_refused(url: str) -> None:
    assert not is_base_url(url)


@pytest.mark.parametrize("text", ["", "host", "1", "127.0.0.1:80", "::g"])
def test_given_what_is_no_address_when_judged_then_it_is_not_ours(text: str) -> None:
    assert not may_be_ours(text)


@pytest.mark.parametrize(
    ("advertise", "url"),
    [
        (None, "http://127.0.0.1:9"),
        ("dn-1", "http://dn-1:9"),
        ("https://proxy:443/", "https://proxy:443"),
    ],
)
def test_given_what_is_advertised_when_a_program_names_itself_then_with_that_scheme(
    advertise: str | None, url: str
) -> None:
    assert own_url(advertise, "127.0.0.1", 9) == url


def test_given_servers_that_were_named_then_those_of_the_settings_stay_and_some_are_added() -> None:
    given = ("http://a:1", "http://b:1")

    assert servers_to_ask(given, ["http://c:1/", "http://a:1"]) == (*given, "http://c:1")
    assert servers_to_ask(given, []) == ()
    assert servers_to_ask(["https://a:1"], ["http://c:1"]) == ("https://a:1",)
    many = [f"http://m{number}:1" for number in range(2 * SERVERS_MAX)]
    assert servers_to_ask(given, many) == (*given, *many[:SERVERS_MAX])
