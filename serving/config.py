"""Settings of every program, from one model: flags, variables, and a file.

Defaults, then a TOML file, then the environment, then flags. A setting has one name in all of them:
`listen` of a datanode is `--listen`, METASRV_DATANODE_LISTEN, and `listen` below `[datanode]`.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Self, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.functional_validators import field_validator

from metasrv_base.ids import NODE_ID
from metasrv_base.settings_list import SettingFlag, in_effect, settings_of, table_of
from metasrv_base.token import listen_fault, optional_token, optional_tokens
from metasrv_base.wire.http.addresses import is_base_url
from metasrv_base.wire.problem.fault_words import fault_of


class StartConfig(BaseModel):
    """Settings that every program has. A list is written with commas between, in a file as one."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    program: ClassVar[str]
    """Name of the program, and of its table in a TOML file."""
    env_prefix: ClassVar[str]
    """The prefix of its variables: METASRV_, its name, and _."""

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
    ready_file: Path | None = None
    """Written, by rename, once the program listens: its id, "url" and "pid"."""

    @model_validator(mode="before")
    @classmethod
    def _lists_are_split(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        lists = {n for n, field in cls.model_fields.items() if get_origin(field.annotation) is list}
        texts = {n: v for n, v in values.items() if n in lists and isinstance(v, str)}
        return {**values, **{name: split(text) for name, text in texts.items()}}

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
        url = value if value is None or "://" in value else f"http://{value}:1"
        if url is not None and not is_base_url(url):
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
    def effective_settings(
        cls, environment: Mapping[str, str], toml: Path | None
    ) -> list[SettingFlag]:
        """Every setting as it is for a program that is started without flags."""
        settings = settings_of(cls, cls.env_prefix)
        return in_effect(settings, table_of(toml, cls.program), environment)

    @classmethod
    def flags(cls, argv: Sequence[str]) -> dict[str, Any]:
        """The settings that a command line gives, by name; with `config` if given."""
        parser = argparse.ArgumentParser(
            prog=f"metasrv {cls.program}", description=f"`metasrv {cls.program} --help` says more."
        )
        parser.add_argument("--config", type=Path, help=f"TOML file with a table [{cls.program}]")
        for setting in settings_of(cls, cls.env_prefix):
            parser.add_argument(
                setting.flag, metavar=setting.kind.upper(), help=setting.default_text
            )
        values = vars(parser.parse_args(argv))
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def start(cls, argv: Sequence[str]) -> Self:
        """The settings of this process. Raises ValueError with a line for each fault, OSError for a
        file that cannot be read; a flag that is unknown ends the process with 2."""
        flags = cls.flags(argv)
        toml = flags.pop("config", None)
        try:
            return cls.read(flags, os.environ, toml)
        except ValidationError as error:
            raise ValueError("\n".join(cls._faults(error))) from error
        except TypeError as error:
            raise ValueError(str(error)) from error

    @classmethod
    def _faults(cls, error: ValidationError) -> Iterator[str]:
        settings = {setting.name: setting for setting in settings_of(cls, cls.env_prefix)}
        for fault in error.errors():
            name = str(fault["loc"][0]) if fault["loc"] else ""
            message = fault_of(fault)
            if name not in settings:
                close = get_close_matches(name, settings, n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                yield f"{name}: there is no such setting{hint}" if name else message
            elif fault["type"] == "missing":
                setting = settings[name]
                yield f"{name}: it is required: give {setting.flag} or {setting.variable}"
            else:
                yield f"{name}: {message}, not {fault['input']}"


class ProgramConfig(StartConfig):
    """Settings that every program of the data plane has."""

    metasrv: str
    """URLs of metasrv servers, separated by commas."""

    @model_validator(mode="after")
    def _has_metasrv(self) -> Self:
        urls = self.metasrv_urls
        if not urls or not all(url.startswith(("http://", "https://")) for url in urls):
            raise ValueError("metasrv: at least one URL with http:// or https://")
        return self

    @property
    def metasrv_urls(self) -> tuple[str, ...]:
        return tuple(split(self.metasrv))


def split(text: str) -> list[str]:
    """The parts between commas, without spaces."""
    return [part.strip() for part in text.split(",") if part.strip()]


def checked_name(value: str) -> str:
    """Returns *value*, the name of a program or its zone; a validator. Raises ValueError."""
    if NODE_ID.fullmatch(value) is None:
        raise ValueError("letters, digits, _ and -, at most 64, a letter or digit first")
    return value
