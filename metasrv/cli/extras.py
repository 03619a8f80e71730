"""Extras of the wheel: what commands need beside the SDK, and what of it is not installed."""

import re
from collections.abc import Iterator, Mapping

EXTRAS = ("server", "datanode", "spark", "demo")
NEEDED: Mapping[str, tuple[str, ...]] = {
    "server": ("server",),
    "datanode": ("datanode",),
    "frontend": ("datanode",),
    "playground": ("server", "datanode", "spark"),
    "backup": ("server",),
    "check": ("server", "datanode"),
    "config": ("server", "datanode"),
    "demo": ("demo",),
}
"""Packages by command; the other commands are clients and need none."""
_REQUIRED = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)(?:\[(?P<extras>[a-z,]+)\])?[^;]*;.*extra == .(?P<extra>[a-z]+)."
)


def lacking(command: str) -> tuple[str, ...]:
    """The extras of a command of which something is not installed."""
    return tuple(extra for extra in NEEDED.get(command, ()) if missing_of(extra))


def missing_of(extra: str) -> list[str]:
    """Packages that an extra declares and that are not installed; none in a checkout, which has
    what its lock says."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        declared = requires("metasrv") or []
    except PackageNotFoundError:
        return []
    return sorted({name for name in _names(extra, declared) if not _is_installed(name)})


def install(*extras: str) -> str:
    """The command that installs them."""
    return f"pip install 'metasrv[{','.join(extras)}]'"


def _names(extra: str, declared: list[str]) -> Iterator[str]:
    for text in declared:
        match = _REQUIRED.fullmatch(text)
        if match is None or match["extra"] != extra:
            continue
        if match["extras"] is None:
            yield match["name"]
            continue
        for other in match["extras"].split(","):
            yield from _names(other, declared)


def _is_installed(name: str) -> bool:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
