"""What every program of the data plane is told at its start: where metasrv is, where it listens.

Defaults, then a TOML file, then the environment, then flags.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.functional_validators import field_validator

from metasrv_base.ids import NODE_ID
from metasrv_base.settings_list import SettingFlag, in_effect, settings_of, table_of
from metasrv_base.token import listen_fault, optional_token, optional_tokens
from metasrv_base.wire.http.addresses import is_base_url


class ProgramConfig(BaseModel):
    """Environment: `env_prefix` and the name of the setting, in capitals."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    program: ClassVar[str]
    """Its name, and that of its table in a TOML file."""
    env_prefix: ClassVar[str]

    metasrv: str
    """URLs of metasrv servers, separated by commas."""
    listen: str = "127.0.0.1:0"
    """Host and port; port 0: a free one. Any other than loopback needs a tokens_file."""
    advertise: str | None = None
    """The host by which others reach this program, or the URL of a proxy in front of it that ends
    TLS, as https://HOST:PORT. Default: the host it listens on."""
    tokens_file: Path | None = None
    """Mode 0600; a line `NAME sha256:HEX` for each token that is taken. None: anybody may ask. Read
    again at SIGHUP."""
    cluster_tokens_file: Path | None = None
    """The same for tokens of the cluster's own programs; needs a tokens_file. Registration,
    heartbeats and orders take no others. None: they take those of clients."""
    token_file: Path | None = None
    """Mode 0600; its first line is the token that this program shows to others. Read again at
    SIGHUP."""

    @field_validator("listen")
    @classmethod
    def _has_a_port(cls, value: str) -> str:
        host, _, port = value.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ValueError("a host, and a port from 0 to 65535")
        return value

    @field_validator("advertise")
    @classmethod
    def _is_a_host_or_url(cls, value: str | None) -> str | None:
        if value is not None and "://" in value and not is_base_url(value):
            raise ValueError("a host, or a URL as https://HOST:PORT")
        return value

    @model_validator(mode="after")
    def _may_listen(self) -> Self:
        has_tokens = optional_tokens(self.tokens_file) is not None
        if optional_tokens(self.cluster_tokens_file) is not None and not has_tokens:
            raise ValueError("cluster_tokens_file: it needs a tokens_file beside it")
        if fault := listen_fault(self.host, self.advertise, has_tokens=has_tokens):
            raise ValueError(f"listen: {fault}")
        optional_token(self.token_file)
        return self

    @model_validator(mode="after")
    def _has_metasrv(self) -> Self:
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

    @classmethod
    def read(
        cls, flags: Mapping[str, Any], environment: Mapping[str, str], toml: Path | None
    ) -> Self:
        """Flags win over the environment, that over the file's table of the program.

        Raises ValueError (pydantic's, tomllib's) or TypeError for anything missing, unknown or
        unsafe, OSError for a file that cannot be read.
        """
        named = {
            name.removeprefix(cls.env_prefix).lower(): value
            for name, value in environment.items()
            if name.startswith(cls.env_prefix)
        }
        layers: list[Mapping[str, Any]] = [table_of(toml, cls.program), named, flags]
        return cls.model_validate({k: v for layer in layers for k, v in layer.items()})

    @classmethod
    def told(cls, environment: Mapping[str, str], toml: Path | None) -> list[SettingFlag]:
        """Every setting as it is for a program that is started without flags."""
        settings = settings_of(cls, cls.env_prefix)
        return in_effect(settings, table_of(toml, cls.program), environment)

    @classmethod
    def flags(cls, argv: Sequence[str], about: str | None) -> dict[str, Any]:
        """What a command line says, by name; with `config` and `ready_file` if it says them."""
        parser = argparse.ArgumentParser(prog=cls.program, description=about)
        parser.add_argument("--config", type=Path, help=f"TOML file with a table [{cls.program}]")
        parser.add_argument("--ready-file", type=Path, help="written once the program listens")
        for name, field in cls.model_fields.items():
            kind = int if field.annotation is int else str
            flag = f"--{name.replace('_', '-')}"
            parser.add_argument(flag, type=kind, help=field.description)
        arguments = vars(parser.parse_args(argv))
        return {name: value for name, value in arguments.items() if value is not None}


def checked_name(value: str) -> str:
    """Of a program or its zone, as a validator. Raises ValueError."""
    if NODE_ID.fullmatch(value) is None:
        raise ValueError("letters, digits, _ and -, at most 64, a letter or digit first")
    return value
