"""One class per key family; the only place where key text is built or parsed."""

import re
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from operator import attrgetter
from string import Formatter
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, cast, get_type_hints

from keys.value import StoredModel
from metasrv_base.errors import Corrupt
from metasrv_base.ids import IDENTIFIER, NODE_ID, UUID_TEXT

V = TypeVar("V", bound=StoredModel)

# What each named part of a key may hold. Integers are decimals; everything else is listed here.
SEGMENTS: Mapping[str, re.Pattern[str]] = {
    "catalog": IDENTIFIER,
    "schema": IDENTIFIER,
    "table": IDENTIFIER,
    "name": IDENTIFIER,
    "node": NODE_ID,
    "holder": NODE_ID,
    "server": NODE_ID,
    "role": re.compile(r"datanode|frontend|metasrv"),
    "procedure": UUID_TEXT,
    "reader": UUID_TEXT,
    "batch": re.compile(rf"{UUID_TEXT.pattern}(\.[0-9]{{1,19}}\.[0-9]{{1,9}})?"),
    "digest": re.compile(r"[0-9a-f]{64}"),
    "resource": re.compile(r"[a-z_]{1,32}:[A-Za-z0-9_.-]{1,128}"),
}


class Range(NamedTuple):
    """Keys from `start` up to, not including, `end`."""

    start: bytes
    end: bytes


class Key(Generic[V]):
    """A typed address in the key space, relative to the cluster's prefix (the store adds it).

    A family is a frozen dataclass of its parts and declares its text once, as `template`; encoding,
    parsing, ranges and the page docs/keyspace.md all derive from it. A number that is scanned in
    order is zero-padded.
    """

    __slots__ = ("_raw",)

    template: ClassVar[str]
    value_type: ClassVar[type[StoredModel]]
    is_logged: ClassVar[bool] = False
    """Whether the catalog log tells the value: such a key is written by entries of the log alone
    (keys/commit/change.py)."""

    _raw: bytes
    """Text of the key, built once: a change uses each of its keys repeatedly."""

    def __post_init__(self) -> None:
        form = _form(cast(Hashable, type(self)))
        parts = form.parts(self)
        text = form.text % parts
        if form.legal.fullmatch(text) is None:
            raise ValueError(type(self).__name__, parts)
        object.__setattr__(self, "_raw", text.encode())

    def __bytes__(self) -> bytes:
        return self._raw

    def __str__(self) -> str:
        return self._raw.decode()

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """The inverse of bytes(key). Raises Corrupt unless *raw* is exactly what we would write."""
        match = _pattern(cls.template).fullmatch(raw.decode("utf-8", "replace"))
        if match is None:
            raise Corrupt(family=cls.__name__, raw=raw)
        types = _types(cast(Hashable, cls))
        try:
            key = cls(**{n: t if types[n] is str else int(t) for n, t in match.groupdict().items()})
        except ValueError as error:
            raise Corrupt(family=cls.__name__, raw=raw) from error
        if bytes(key) != raw:
            raise Corrupt(family=cls.__name__, raw=raw)
        return key

    @classmethod
    def under(cls, *leading: str | int) -> Range:
        """Every key of this family whose first parts are *leading*; with none, the whole family."""
        text, given = "", list(leading)
        for literal, name, spec, _conversion in Formatter().parse(cls.template):
            text += literal
            if name is None or not given:
                break
            text += format(given.pop(0), spec or "")
        assert not given, f"{cls.__name__} has fewer parts than {leading}"
        assert text.endswith("/"), f"{cls.__name__} has no range under {leading}"
        return Range(text.encode(), prefix_end(text.encode()))


class KeyForm(NamedTuple):
    """The text of a family, ready to be filled in and judged as a whole."""

    text: str
    """The form of the key's text, with a place of the operator `%` for each part."""
    parts: Callable[[Any], Any]
    """Returns the parts of a key, in the order of their places."""
    legal: re.Pattern[str]
    """Matches texts of legal parts alone: none may hold the slash that ends it."""


@cache
def _form(family: Hashable) -> KeyForm:
    text = legal = ""
    names = []
    for literal, name, spec, _conversion in Formatter().parse(cast(Any, family).template):
        text, legal = text + literal, legal + re.escape(literal)
        if name is not None:
            names.append(name)
            is_text = name in SEGMENTS
            text += "%s" if is_text else f"%{spec}d"
            legal += f"(?:{SEGMENTS[name].pattern})" if is_text else "[0-9]+"
    parts = attrgetter(*names) if names else _no_parts
    return KeyForm(text, parts, re.compile(legal))


def _no_parts(_key: object) -> tuple[()]:
    return ()


@cache
def _types(family: Hashable) -> Mapping[str, Any]:
    return get_type_hints(family)


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = [
        re.escape(text) + (f"(?P<{name}>{'[0-9]+' if spec else '[^/]+'})" if name else "")
        for text, name, spec, _conversion in Formatter().parse(template)
    ]
    return re.compile("".join(parts))


def prefix_end(prefix: bytes) -> bytes:
    """The first key above every key that starts with *prefix*; b"\\0" (to the end) if none is."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else b"\0"
