"""Finds out why no metasrv answered: refused, no such host, silence, TLS, or a server of another
kind."""

import socket
import ssl
from collections.abc import Iterator

import httpx
import orjson

from metasrv_base.errors import Corrupt, MetaError, NotFound, Unavailable, Unknown

PROBE_S = 1.0
"""Seconds for one question to a server that does not know our paths."""
SAID_BY_SERVERS = frozenset({"detail", "status", "procedure_id", "regions", "reason"})
OTHER_SERVERS = (
    ("etcdserver", "an etcd"),
    ("frontend_id", "a frontend"),
    ("node_id", "a datanode"),
)
OWN = "server_id"
"""The same field of a metasrv."""
"""A field of the answer to `/version`, and the kind of server that sends it."""


def is_unreachable(error: MetaError) -> bool:
    """Whether no metasrv answered, or none of this version: an answer of one has a detail."""
    if isinstance(error, NotFound):
        return is_another_server(error)
    if is_foreign(error):
        return True
    if isinstance(error, Corrupt):
        return not SAID_BY_SERVERS & error.facts.keys()
    if not isinstance(error, Unavailable | Unknown):
        return False
    return error.facts.get("sent") is False or not SAID_BY_SERVERS & error.facts.keys()


def is_foreign(error: MetaError) -> bool:
    """Whether the answer was of a proxy or another program, and only its status is known."""
    return "status" in error.facts and "detail" not in error.facts


def is_another_server(error: MetaError) -> bool:
    """Whether the server does not know a path that every metasrv has."""
    if not isinstance(error, NotFound):
        return False
    return error.facts.get("what") == "route" or error.facts.get("status") == 404


def reason_of(error: MetaError, urls: str) -> tuple[str, str]:
    """A sentence about the fault, and one of advice. *urls*: as the user gave them."""
    if is_another_server(error):
        kind = kind_of_server(urls.split(",")[0])
        return (
            f"{urls} is {kind}.",
            "give the URL of a metasrv with --metasrv or METASRV_URL, or the name of a context",
        )
    if is_foreign(error):
        return (
            f"{urls} answered with HTTP status {error.facts['status']} and not as a metasrv does.",
            "check the URL, and the proxy or other program that answers there",
        )
    if isinstance(error, Corrupt):
        return (
            f"{error.facts.get('url', urls)} gave an answer that no metasrv of this version gives.",
            "check the URL, and whether a proxy answers there; `metasrv --version` shows the "
            "version of this command",
        )
    for cause in _causes(error):
        match cause:
            case ssl.SSLError():
                return (
                    f"TLS with {urls} failed: {cause.reason or cause}.",
                    "write http:// if the service has no TLS; else see to its certificate",
                )
            case socket.gaierror():
                return f"There is no host of that name: {urls}.", "check the name in the URL"
            case ConnectionRefusedError():
                return (
                    f"{urls} refuses connections: no program listens there.",
                    "start one, as by `metasrv playground`, or check the port; "
                    "METASRV_PATIENCE=30 waits 30 s for one that starts",
                )
            case httpx.ConnectTimeout() | httpx.TimeoutException() | TimeoutError():
                return (
                    f"{urls} gave no answer in time.",
                    "check the address and the firewall, and whether the service hangs",
                )
            case httpx.RemoteProtocolError():
                return (
                    f"{urls} does not speak HTTP as a metasrv does: {cause}.",
                    "check the port; write https:// if the service has TLS",
                )
    return f"No service answered at {urls}.", "check the URL and whether the service runs"


def kind_of_server(url: str) -> str:
    """The kind of server at *url*, with an article; asks it for its version."""
    try:
        answer = httpx.get(f"{url.rstrip('/')}/version", timeout=PROBE_S, trust_env=False)
        document = orjson.loads(answer.content)
    except (httpx.HTTPError, orjson.JSONDecodeError):
        return "not a metasrv"
    fields = document if isinstance(document, dict) else {}
    if OWN in fields:
        return f"a metasrv of version {fields.get('version')}, which does not know this command"
    for field, kind in OTHER_SERVERS:
        if field in fields:
            return f"{kind}, not a metasrv"
    return "not a metasrv"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The chain of causes, the deepest first: it says most."""
    cause = error.__cause__ or error.__context__
    if cause is not None:
        yield from _causes(cause)
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            for member in cause.exceptions:
                yield from (*_causes(member), member)
