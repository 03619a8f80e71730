"""Region engines: their names, the options of each, and whether rows outlive a process.

The set is closed: a program that has another engine names it here first, so that a name or an
option that nobody acts upon is refused when it is asked for, and not by the node that is to obey.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from metasrv_base.errors import Refused
from metasrv_base.schema.scalars import JsonScalar

LSM = "lsm"
"""Sorted files behind a log."""
MEMORY = "memory"
"""Rows in the memory of one process, and nowhere else."""

MEMTABLE_BYTES_MIN = 64 << 10
REGION_BYTES_MIN = 1 << 20


@dataclass(frozen=True, slots=True)
class IntOption:
    """A whole number between two bounds, both of which are allowed."""

    least: int
    most: int
    meaning: str


@dataclass(frozen=True, slots=True)
class EngineKind:
    """One engine as every program knows it."""

    name: str
    is_volatile: bool
    """Whether the rows of a region end with the process that serves it."""
    options: Mapping[str, IntOption]
    """Options by name. One that is left out is as the node was started."""


ENGINES: Mapping[str, EngineKind] = {
    LSM: EngineKind(
        LSM,
        is_volatile=False,
        options={
            "memtable_bytes": IntOption(
                MEMTABLE_BYTES_MIN,
                1 << 30,
                "size at which rows in memory are written to a file; never above the node's own",
            ),
            "flush_age_ms": IntOption(
                100, 86_400_000, "age at which rows in memory are written to a file, in ms"
            ),
        },
    ),
    MEMORY: EngineKind(
        MEMORY,
        is_volatile=True,
        options={
            "region_bytes": IntOption(
                REGION_BYTES_MIN,
                1 << 40,
                "bytes of the rows of one region; above it, writes that add rows are refused",
            ),
        },
    ),
}


def is_volatile(engine: str) -> bool:
    """An engine that this program does not know keeps its rows, as far as it can tell."""
    kind = ENGINES.get(engine)
    return kind is not None and kind.is_volatile


def must_be_engine(engine: str) -> EngineKind:
    """Raises Refused `unsupported`, with the engines that there are."""
    kind = ENGINES.get(engine)
    if kind is None:
        raise Refused("unsupported", what=f"engine {engine}", engine=engine, has=sorted(ENGINES))
    return kind


def option_faults(kind: EngineKind, options: Mapping[str, JsonScalar]) -> Iterator[tuple[str, str]]:
    """Yields the name of each option that the engine does not take as it is, and the reason."""
    for name, value in options.items():
        option = kind.options.get(name)
        if option is None:
            yield name, f"{kind.name} has the options {', '.join(kind.options)}"
        elif isinstance(value, bool) or not isinstance(value, int):
            yield name, "a whole number is expected"
        elif not option.least <= value <= option.most:
            yield name, f"{value} is not between {option.least} and {option.most}"


def must_be_options(engine: str, options: Mapping[str, JsonScalar]) -> None:
    """Raises Refused: as `must_be_engine`, or `invalid-request` with what is wrong."""
    faults = dict(option_faults(must_be_engine(engine), options))
    if faults:
        reason = "; ".join(f"{name}: {detail}" for name, detail in sorted(faults.items()))
        raise Refused("invalid-request", engine=engine, reason=reason)
