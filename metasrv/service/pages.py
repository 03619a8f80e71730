"""Lists in pages: a token says where the next page begins, and in which list at which version."""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

from metasrv_base.errors import Refused

SEAL_BYTES = 12
T = TypeVar("T")

Position = Sequence[str | int]


@dataclass(frozen=True, slots=True)
class ListName:
    """The identity of a list: its path and filters, and the cluster that it belongs to."""

    cluster: str
    path: str
    filters: tuple[str | int | bool | None, ...] = ()


@dataclass(frozen=True, slots=True)
class PageToken:
    """The place after which a page begins. `version` is 0 in lists that have none."""

    version: int
    after: tuple[str | int, ...]


def seal(name: ListName, token: PageToken) -> str:
    """The token as text. Sealed against mistakes, not against malice: it grants nothing."""
    body = orjson.dumps([token.version, list(token.after)])
    return urlsafe_b64encode(_mac(name, body) + body).rstrip(b"=").decode()


def unseal(name: ListName, text: str) -> PageToken:
    """Raises Refused("bad-page-token") unless `seal` made it for this very list."""
    try:
        raw = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (NotBase64, UnicodeEncodeError):
        raise Refused("bad-page-token") from None
    body = raw[SEAL_BYTES:]
    if not hmac.compare_digest(raw[:SEAL_BYTES], _mac(name, body)):
        raise Refused("bad-page-token")
    version, after = orjson.loads(body)
    return PageToken(version, tuple(after))


def _mac(name: ListName, body: bytes) -> bytes:
    listed: list[Any] = [name.path, *name.filters]
    return hmac.digest(name.cluster.encode(), orjson.dumps(listed) + body, "sha256")[:SEAL_BYTES]


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    items: tuple[T, ...]
    after: tuple[str | int, ...] | None
    """The position after which the next page begins; None: this is the last."""


def page_of(
    items: Sequence[T], position_of: Callable[[T], Position], after: Position | None, size: int
) -> ListPage[T]:
    """Returns at most *size* of *items*, which are in the order of `position_of`, from above
    *after* on."""
    start = 0 if after is None else _above(items, position_of, tuple(after))
    chosen = tuple(items[start : start + size])
    more = start + size < len(items)
    return ListPage(chosen, tuple(position_of(chosen[-1])) if more else None)


def _above(
    items: Sequence[T], position_of: Callable[[T], Position], after: tuple[str | int, ...]
) -> int:
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if tuple(position_of(items[middle])) <= after:
            low = middle + 1
        else:
            high = middle
    return low
