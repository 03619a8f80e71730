"""Bearer tokens: a program keeps hashes of those it takes, in a file that nobody else can read.

Tokens are 256 random bits, so one round of SHA-256 is enough: there is nothing to guess.
"""

import hmac
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # compared, not bound
OTHERS = stat.S_IRWXG | stat.S_IRWXO
TOKEN_BYTES = 32
FILE_BYTES_MAX = 64 << 10  # a thousand names
HOLDER = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
"""The pattern of a holder's name."""
_LINE = re.compile(rf"({HOLDER}) sha256:([0-9a-f]{{64}})")
_TOKEN = re.compile(r"[\x21-\x7e]{20,512}")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens a program takes. A holder may have several, while one replaces another."""

    holders: Mapping[str, str]
    """The name of who holds a token, by the token's hash."""

    def holder(self, token: str) -> str | None:
        """Returns the holder's name; None: nobody. Compares every hash, in constant time."""
        token_hash = hash_of(token)
        names = [
            name for stored, name in self.holders.items() if hmac.compare_digest(stored, token_hash)
        ]
        return names[0] if names else None


class OwnToken:
    """The token that a program shows to others, as it stood in its file when it was last read."""

    def __init__(self, value: str | None) -> None:
        """*value* None: it shows none."""
        self._value = value
        self._path: Path | None = None

    @classmethod
    def of_file(cls, path: Path | None) -> "OwnToken":
        """Raises ValueError, as `read_token`. None: the program shows none."""
        own = cls(optional_token(path))
        own._path = path
        return own

    def reload(self) -> None:
        """Reads the file again. Raises ValueError, as `read_token`; then nothing is changed."""
        self._value = optional_token(self._path)

    @property
    def headers(self) -> Mapping[str, str]:
        """The header that shows it; none, without a token."""
        return {"authorization": f"Bearer {self._value}"} if self._value else {}


def hash_of(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def line_of(name: str, token: str) -> str:
    """Returns the line of a tokens file. Raises ValueError for an invalid name."""
    line = f"{name} sha256:{hash_of(token)}"
    if not _LINE.fullmatch(line):
        raise ValueError(f"{name!r} is no name: letters, digits, _ . and -, at most 64")
    return line


def read_tokens(path: Path) -> Tokens:
    """Lines `NAME sha256:HEX`; empty ones and those that begin with # are passed over.

    Raises ValueError for a file that others can read, or we cannot, or that says something else.
    """
    holders: dict[str, str] = {}
    for number, line in enumerate(_secret(path).splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or match[2] in holders:
            raise ValueError(f"{path}, line {number}: a name, then sha256: and 64 new digits")
        holders[match[2]] = match[1]
    if not holders:
        raise ValueError(f"{path}: it holds no token")
    return Tokens(holders)


def read_token(path: Path) -> str:
    """The first line. Raises ValueError for a file that others can read, or we cannot."""
    token = _secret(path).partition("\n")[0].strip()
    if not _TOKEN.fullmatch(token):
        raise ValueError(f"{path}: its first line is no token")
    return token


def _secret(path: Path) -> str:
    try:
        status, text = path.stat(), path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: it cannot be read") from error
    if status.st_mode & OTHERS:
        raise ValueError(f"{path}: others can read it; `chmod 600` it")
    if status.st_size > FILE_BYTES_MAX:
        raise ValueError(f"{path}: it is larger than {FILE_BYTES_MAX} bytes")
    return text


def optional_tokens(path: Path | None) -> Tokens | None:
    return None if path is None else read_tokens(path)


def optional_token(path: Path | None) -> str | None:
    return None if path is None else read_token(path)


def listen_fault(host: str, advertise: str | None, *, has_tokens: bool) -> str | None:
    """Returns the reason for which a program must not listen on *host*; None: it may. Pure."""
    if host in LOOPBACK:
        return None
    if not has_tokens:
        return f"{host} is not loopback: it needs a tokens_file, or anybody could command it"
    if host in EVERYWHERE and advertise is None:
        return f"{host} is every address: say in `advertise` by which one others reach it"
    return None
