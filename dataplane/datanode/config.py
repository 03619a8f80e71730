"""What a datanode is told at its start, beside what every program is (serving/config.py)."""

import posixpath
from typing import ClassVar

from pydantic import Field, field_validator

from serving.config import ProgramConfig, checked_name

MEMTABLE_BYTES_MIN = 64 << 10


class DatanodeConfig(ProgramConfig):
    """Environment: `METASRV_DATANODE_` and the name, as METASRV_DATANODE_NODE_ID."""

    program: ClassVar[str] = "datanode"
    env_prefix: ClassVar[str] = "METASRV_DATANODE_"

    node_id: str
    """Names this node in routes; never given to another one."""
    root: str
    """Absolute folder of its regions and of its own memory. One process at a time."""
    shared_roots: str = ""
    """Absolute folders, separated by commas, that the nodes of the cluster share: below them, and
    below its root, the node deletes folders that regions have left. Default: below its root alone;
    what a failover leaves in other nodes' roots then stays there, and is reported."""
    zone: str = "default"
    """Where the node stands, for placement."""
    memtable_bytes: int = Field(default=32 << 20, ge=MEMTABLE_BYTES_MIN)
    """Rows of one region in memory before they are written to a file; at most twice this."""
    flush_age_ms: int = Field(default=300_000, ge=100)
    """Rows older than this are written to a file, so that a restart replays little."""
    block_cache_bytes: int = Field(default=64 << 20, ge=0)
    """Decoded parts of files, shared by all regions of the node."""

    @field_validator("node_id", "zone")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        return checked_name(value)

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

    @property
    def shared_folders(self) -> tuple[str, ...]:
        return _folders(self.shared_roots)


def _folders(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _checked_folder(value: str) -> str:
    if not posixpath.isabs(value) or posixpath.normpath(value) != value or value == "/":
        raise ValueError("an absolute path without . or .. or a slash at its end")
    return value
