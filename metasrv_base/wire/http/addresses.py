"""Validation of the addresses under which programs of a cluster are reached. Pure."""

import re
from collections.abc import Iterable, Sequence
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import urlsplit

URL_CHARS_MAX = 512
SERVERS_MAX = 32  # servers learnt; a cluster has three or five
_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")


def is_base_url(text: str) -> bool:
    """http or https, a host that may be ours, a port, and nothing else."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    return (
        len(text) <= URL_CHARS_MAX
        and parts.scheme in ("http", "https")
        and port not in (None, 0)
        and parts.username is None
        and parts.path in ("", "/")
        and not parts.query
        and not parts.fragment
        and _is_host(host)
    )


def _is_host(host: str) -> bool:
    """A name, or an address as it is usually written: a resolver takes `2130706433` and `0x7f.1`
    for addresses too (WHATWG URL, "ends in a number")."""
    last = host.rstrip(".").rpartition(".")[2]
    if ":" in host or _NUMBER.fullmatch(last):
        return may_be_ours(host)
    return _NAME.fullmatch(host) is not None


def may_be_ours(address: str) -> bool:
    """An IP address of one machine. Not: link-local ones, where clouds answer with secrets, nor
    groups, nor "any", nor IPv4 in the clothes of IPv6."""
    try:
        ip = IPv6Address(address) if ":" in address else IPv4Address(address)
    except AddressValueError:
        return False
    if isinstance(ip, IPv6Address) and (ip.ipv4_mapped or ip.sixtofour):
        return False
    return not (ip.is_unspecified or ip.is_link_local or ip.is_multicast or _is_unused(ip))


def leads_to_us(peer: object) -> bool:
    """Whether a name has led to where a program of ours can be, by the name of the other end of the
    connection: who registered it may have made it lead elsewhere since (DNS rebinding)."""
    return isinstance(peer, tuple) and may_be_ours(str(peer[0]))


def _is_unused(address: IPv4Address | IPv6Address) -> bool:
    """Loopback of IPv6 is among those that Python calls reserved."""
    return address.is_reserved and not address.is_loopback


def is_weaker(url: str, than: Iterable[str]) -> bool:
    """Whether *url* is reached without TLS, and one of *than* with: whoever was named by a server
    behind TLS is not shown a token in plain text."""
    return url.startswith("http://") and any(other.startswith("https://") for other in than)


def servers_to_ask(configured: Sequence[str], named: Sequence[str]) -> tuple[str, ...]:
    """The servers to ask: those of a program's settings, which stay in case the others move, and
    those that a server has *named* last, at most SERVERS_MAX. One that would be asked without TLS
    is left out if another is asked with it. Empty: none was named, so those known before stay."""
    learnt = [url.rstrip("/") for url in named if not is_weaker(url, configured)]
    return tuple(dict.fromkeys([*configured, *learnt[:SERVERS_MAX]])) if named else ()


def own_url(advertise: str | None, host: str, port: int) -> str:
    """The base URL of a program, as it names itself to others. Programs serve HTTP themselves;
    behind a proxy that ends TLS, `advertise` is the proxy's URL."""
    if advertise is not None and "://" in advertise:
        return advertise.rstrip("/")
    return f"http://{advertise or host}:{port}"
