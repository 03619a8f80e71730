"""Access to etcd: endpoints, TLS, a user. Secrets are files that nobody else can read."""

import os
import stat
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from keys.store.etcd import EtcdKv
from keys.store.etcd_calls import Login
from keys.store.etcd_channel import Credentials

SCHEMES = ("http", "https")
OTHERS = stat.S_IRWXG | stat.S_IRWXO
PASSWORD_BYTES_MAX = 1_024


class StoreAccess(BaseModel):
    """Checked when it is made: a secret that others can read is refused before it is used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoints: tuple[str, ...] = Field(min_length=1)
    """URLs `http://host:port`, or all `https://`."""
    ca_file: Path | None = None
    """PEM; who signed etcd's certificates. None: whom this machine trusts."""
    cert_file: Path | None = None
    key_file: Path | None = None
    """PEM; ours, with `cert_file`."""
    server_name: str | None = None
    """A name that every endpoint's certificate bears; needed with several of them."""
    user: str | None = None
    password_file: Path | None = None
    """The file with the password of `user`, in its first line."""

    @model_validator(mode="after")
    def _is_safe(self) -> "StoreAccess":
        faults = list(self._faults())
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _faults(self) -> Iterator[str]:
        split = [urlsplit(url) for url in self.endpoints]
        schemes = {url.scheme for url in split}
        if len(schemes) != 1 or not schemes <= set(SCHEMES):
            yield "etcd: all endpoints are http:// URLs, or all are https:// URLs"
        if any(not url.hostname or not url.port or url.path.strip("/") for url in split):
            yield "etcd: an endpoint is a scheme, a host and a port"
        if "https" not in schemes and (self.ca_file or self.cert_file or self.server_name):
            yield "etcd: certificates are for https:// endpoints"
        if "https" in schemes and len(split) > 1 and not self.server_name:
            yield "etcd: several https:// endpoints need the name that their certificates bear"
        if (self.cert_file is None) != (self.key_file is None):
            yield "etcd: certificate and key belong together"
        if (self.user is None) != (self.password_file is None):
            yield "etcd: user and password file belong together"
        if self.user and "https" not in schemes and not all(_is_local(u.hostname) for u in split):
            yield "etcd: a password leaves this machine by https:// only"
        yield from (fault for path in self._secrets() for fault in _readable_by_others(path))

    def _secrets(self) -> Iterator[Path]:
        yield from (path for path in (self.key_file, self.password_file) if path is not None)

    async def connect(self, prefix: bytes) -> EtcdKv:
        """Raises OSError for a file that cannot be read. Sends nothing."""
        return await EtcdKv.connect(
            [urlsplit(url).netloc for url in self.endpoints],
            prefix,
            credentials=self._credentials(),
            login=self._login(),
        )

    def _credentials(self) -> Credentials | None:
        if self.endpoints[0].startswith("http://"):
            return None
        return Credentials(
            _bytes(self.ca_file), _bytes(self.cert_file), _bytes(self.key_file), self.server_name
        )

    def _login(self) -> Login | None:
        if self.user is None or self.password_file is None:
            return None
        with self.password_file.open("rb") as opened:
            first, _, _ = opened.read(PASSWORD_BYTES_MAX).partition(b"\n")
        return Login(self.user, first.decode().rstrip("\r"))


def _bytes(path: Path | None) -> bytes | None:
    return None if path is None else path.read_bytes()


def _is_local(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False


def _readable_by_others(path: Path) -> Iterator[str]:
    try:
        status = path.stat()
    except OSError as error:
        yield f"{path}: {error.strerror}"
        return
    if status.st_mode & OTHERS:
        yield f"{path}: others can read it: chmod 600"
    if status.st_uid not in (0, os.geteuid()):
        yield f"{path}: belongs to another user"
