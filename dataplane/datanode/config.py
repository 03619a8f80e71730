"""What a datanode is told at its start: defaults, then a TOML file, then the environment, flags."""

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from base.ids import NODE_ID
from base.settings_list import table_of
from base.token import listen_fault, optional_token, optional_tokens

ENV_PREFIX = "METASRV_DATANODE_"
MEMTABLE_BYTES_MIN = 64 << 10


class DatanodeConfig(BaseModel):
    """Environment: `METASRV_DATANODE_` and the name, as METASRV_DATANODE_NODE_ID."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    node_id: str
    """Names this node in routes; never given to another one."""
    root: str
    """Absolute folder of its regions and of its own memory. One process at a time."""
    metasrv: str
    """URLs of metasrv servers, separated by commas."""
    listen: str = "127.0.0.1:0"
    """Host and port; port 0: a free one. Any other than loopback needs a tokens_file."""
    advertise: str | None = None
    """The host by which others reach this node. Default: the one it listens on."""
    tokens_file: Path | None = None
    """Mode 0600; a line `NAME sha256:HEX` for each token that is taken. None: anybody may ask."""
    token_file: Path | None = None
    """Mode 0600; its first line is the token that this node shows to metasrv."""
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
        if NODE_ID.fullmatch(value) is None:
            raise ValueError("letters, digits, _ and -, at most 64, a letter or digit first")
        return value

    @field_validator("root")
    @classmethod
    def _is_a_root(cls, value: str) -> str:
        if not posixpath.isabs(value) or posixpath.normpath(value) != value or value == "/":
            raise ValueError("an absolute path without . or .. or a slash at its end")
        return value

    @field_validator("listen")
    @classmethod
    def _has_a_port(cls, value: str) -> str:
        host, _, port = value.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ValueError("a host, and a port from 0 to 65535")
        return value

    @model_validator(mode="after")
    def _may_listen(self) -> "DatanodeConfig":
        has_tokens = optional_tokens(self.tokens_file) is not None
        if fault := listen_fault(self.host, self.advertise, has_tokens=has_tokens):
            raise ValueError(f"listen: {fault}")
        optional_token(self.token_file)
        return self

    @model_validator(mode="after")
    def _has_metasrv(self) -> "DatanodeConfig":
        urls = self.metasrv_urls
        if not urls or not all(url.startswith(("http://", "https://")) for url in urls):
            raise ValueError("metasrv: at least one URL with http:// or https://")
        return self

    @property
    def metasrv_urls(self) -> tuple[str, ...]:
        return tuple(url.strip() for url in self.metasrv.split(",") if url.strip())

    @property
    def host(self) -> str:
        return self.listen.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])


def read_config(
    flags: Mapping[str, Any], environment: Mapping[str, str], toml: Path | None
) -> DatanodeConfig:
    """Flags win over the environment, that over the file's table `datanode`.

    Raises ValueError (pydantic's, tomllib's) or TypeError for anything missing, unknown or unsafe,
    OSError for a file that cannot be read.
    """
    layers: list[Mapping[str, Any]] = [table_of(toml, "datanode"), _named(environment), flags]
    return DatanodeConfig.model_validate({k: v for layer in layers for k, v in layer.items()})


def _named(environment: Mapping[str, str]) -> Mapping[str, str]:
    return {
        name.removeprefix(ENV_PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(ENV_PREFIX)
    }
