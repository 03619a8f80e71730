"""The settings of a datanode, beside those of every program (serving/config.py)."""

import posixpath
from typing import ClassVar, Self

from pydantic import Field, field_validator, model_validator

from metasrv_base.rows.retry import SENT_MS_MAX
from serving.config import ProgramConfig, checked_name

MEMTABLE_BYTES_MIN = 64 << 10
ROWS_BYTES_MIN = 16 << 20
FETCH_BYTES_PER_S_MIN = 128 << 10
"""At a lower rate a piece takes so long that the leader ends the session as one that is not
used."""


class DatanodeConfig(ProgramConfig):
    """Environment: `METASRV_DATANODE_` and the name, as METASRV_DATANODE_NODE_ID."""

    program: ClassVar[str] = "datanode"
    env_prefix: ClassVar[str] = "METASRV_DATANODE_"

    node_id: str
    """The id of this node, which routes name; never given to another node."""
    root: str
    """Absolute folder of its regions and its journal. One process at a time may use it."""
    shared_roots: str = ""
    """Absolute folders, separated by commas, that the nodes of the cluster share: below them, and
    below its root, the node deletes folders that regions have left. Default: below its root alone;
    what a failover leaves in other nodes' roots then stays there, and is reported."""
    zone: str = "default"
    """The zone of the node, for placement: nodes of one zone may fail together."""
    memtable_bytes: int = Field(default=32 << 20, ge=MEMTABLE_BYTES_MIN)
    """The size at which the rows of one region in memory are written to a file; they take at most
    twice this."""
    flush_age_ms: int = Field(default=300_000, ge=100)
    """The age at which rows in memory are written to a file, so that a restart replays few."""
    block_cache_bytes: int = Field(default=64 << 20, ge=0)
    """Memory for decoded parts of files, shared by all regions of the node."""
    memory_bytes: int = Field(default=1 << 30, ge=ROWS_BYTES_MIN)
    """Memory for all regions together: a quarter for reads, an eighth for batches that are being
    received and written, block_cache_bytes, and the rest for rows that are in no file yet and for
    applied statements, which may take an eighth of it. When half of that rest is taken, the largest
    regions are flushed; when seven eighths are taken, writes are refused with 503. Reads are
    refused with 503 when their quarter is taken. The last eighth is for flushes and merges."""
    fetch_bytes_per_s: int = Field(default=64 << 20, ge=0)
    """The most bytes per second of other nodes' files that copies of this node fetch, all together,
    so that reads and writes go on beside them; 131072 at least, or 0: no limit."""
    statement_window_ms: int = Field(default=120_000, ge=2 * SENT_MS_MAX, le=3_600_000)
    """The time for which regions remember an applied statement after its first sender made it, so
    that a copy has no effect. A copy that comes later is refused with 409 `statement-too-old`."""
    clock_drift_ms: int = Field(default=5_000, ge=0, le=60_000)
    """The most by which clocks of senders and nodes may differ. A statement that is further ahead
    of the node's clock is refused with 409 `clock-skew`."""

    @field_validator("node_id", "zone")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        return checked_name(value)

    @field_validator("fetch_bytes_per_s")
    @classmethod
    def _is_a_rate(cls, value: int) -> int:
        if 0 < value < FETCH_BYTES_PER_S_MIN:
            raise ValueError(f"at least {FETCH_BYTES_PER_S_MIN}, or 0 for no limit")
        return value

    @field_validator("root")
    @classmethod
    def _is_a_root(cls, value: str) -> str:
        return _checked_folder(value)

    @field_validator("shared_roots")
    @classmethod
    def _are_folders(cls, value: str) -> str:
        for folder in _folders(value):
            _checked_folder(folder)
        return value

    @model_validator(mode="after")
    def _has_room_for_rows(self) -> Self:
        if self.rows_bytes < ROWS_BYTES_MIN:
            room = f"memory_bytes leaves {self.rows_bytes} bytes for rows, with block_cache_bytes"
            raise ValueError(f"{room}; at least {ROWS_BYTES_MIN} are needed")
        return self

    @property
    def rows_bytes(self) -> int:
        """The part of memory for rows that are in no file yet, and for replays."""
        bytes_taken = self.read_bytes + self.body_bytes + self.block_cache_bytes
        return self.memory_bytes - bytes_taken

    @property
    def read_bytes(self) -> int:
        """The part of memory for scans, cursors, lookups and their answers."""
        return self.memory_bytes // 4

    @property
    def body_bytes(self) -> int:
        """The part of memory for batches that are being received and written."""
        return self.memory_bytes // 8

    @property
    def memtable_bytes_max(self) -> int:
        """`memtable_bytes`, or less where memory is small: a flush copies the rows of one memtable,
        and two flushes may run."""
        return min(self.memtable_bytes, self.rows_bytes // 8)

    @property
    def shared_folders(self) -> tuple[str, ...]:
        return _folders(self.shared_roots)


def _folders(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _checked_folder(value: str) -> str:
    if not posixpath.isabs(value) or posixpath.normpath(value) != value or value == "/":
        raise ValueError("an absolute path without . or .. or a slash at its end")
    return value
