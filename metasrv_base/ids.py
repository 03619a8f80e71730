"""Identifiers: what each is made of, and the port that makes the random ones."""

import os
import re
from typing import NewType, Protocol

from metasrv_base.clock import Clock

TableId = NewType("TableId", int)
RegionId = NewType("RegionId", int)  # table_id << 32 | region number; a decimal string on the wire
NodeId = NewType("NodeId", str)
ProcedureId = NewType("ProcedureId", str)  # UUIDv7 in its canonical text, so ids sort by time

TABLE_ID_MIN = 1024  # below are reserved for tables of the system itself
REGION_NUMBER_BITS = 32

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
NODE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def region_id(table: TableId, number: int) -> RegionId:
    assert 0 <= number < 1 << REGION_NUMBER_BITS
    return RegionId(table << REGION_NUMBER_BITS | number)


def table_of(region: RegionId) -> TableId:
    return TableId(region >> REGION_NUMBER_BITS)


def number_of(region: RegionId) -> int:
    return region & ((1 << REGION_NUMBER_BITS) - 1)


def is_identifier(text: str) -> bool:
    """Names of catalogs, schemas, tables and columns. `fullmatch`: `$` would let "a\\n" pass."""
    return IDENTIFIER.fullmatch(text) is not None


class Ids(Protocol):
    """Source of new ids; tests and the crash harness use a counter."""

    def procedure_id(self) -> ProcedureId: ...


class RandomIds:
    """UUIDv7 (RFC 9562, 5.7): 48 bits of wall milliseconds, then random bits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def procedure_id(self) -> ProcedureId:
        return ProcedureId(uuid7(self._clock.wall_ms(), os.urandom(10)))


def uuid7(wall_ms: int, noise: bytes) -> str:
    assert len(noise) == 10
    high = 0x7000 | int.from_bytes(noise[:2]) & 0x0FFF
    low = 0x8000 | int.from_bytes(noise[2:4]) & 0x3FFF
    stamp = f"{wall_ms & (1 << 48) - 1:012x}"
    return f"{stamp[:8]}-{stamp[8:]}-{high:04x}-{low:04x}-{noise[4:].hex()}"


def wall_ms_of(uuid: str) -> int:
    """Returns the time at which `uuid7` made *uuid*, wall clock."""
    return int(uuid[:8] + uuid[9:13], 16)
