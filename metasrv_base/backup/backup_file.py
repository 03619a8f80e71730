"""The parts of a backup file: every key of one cluster at one revision of its store.

A file is gzip over lines of JSON, so that `gzip -dc FILE | jq` reads it: a header, one line a key
in the order of keys, and an end with the digest of all lines before it. `BackupWriter` makes the
bytes, `BackupReader` judges them.
"""

import base64
from typing import Annotated, Literal

from pydantic import Field

from metasrv_base.errors import Corrupt
from metasrv_base.wire.model import Int64, WireModel

NEWEST_FORMAT = 1
LINE_BYTES_MAX = 16 << 20
"""Bytes of one line: a value of etcd's largest, of which each byte takes six in JSON."""
MEDIA_TYPE = "application/gzip"


class BackupHeader(WireModel):
    """The first line."""

    kind: Literal["metasrv-backup"] = "metasrv-backup"
    format: Annotated[int, Field(ge=1)] = NEWEST_FORMAT
    cluster_id: str
    revision: Int64
    """The store's revision at which every key was read."""
    keys: Int64
    """Keys that follow."""
    made_at_ms: Int64
    """Wall clock of the server that read them."""
    made_by: str
    """Version of that server."""


class BackupKey(WireModel):
    """One key: relative to the prefix of its cluster, as the value."""

    key: str
    value: str | None = None
    """A value that is text; None: it is in `base64`."""
    base64: str | None = None
    created: Int64
    """The revision of the store at which it was put first, since it was last deleted."""
    revision: Int64
    """The revision at which it was put last."""
    lease: Int64 | None = None
    """The lease of the store under which it lived; None: it had none."""

    @classmethod
    def of(
        cls, key: bytes, value: bytes, created: int, revision: int, lease: int = 0
    ) -> "BackupKey":
        """Raises Corrupt for a key that is no text, which no family has."""
        try:
            text = key.decode()
        except UnicodeDecodeError as error:
            raise Corrupt(key=key) from error
        try:
            forms: dict[str, str] = {"value": value.decode()}
        except UnicodeDecodeError:
            forms = {"base64": base64.b64encode(value).decode()}
        return cls(key=text, **forms, created=created, revision=revision, lease=lease or None)

    @property
    def raw(self) -> bytes:
        """The value as it is stored. Raises ValueError if the line has none, or two."""
        if (self.value is None) is (self.base64 is None):
            raise ValueError("one of value and base64")
        if self.value is not None:
            return self.value.encode()
        return base64.b64decode(self.base64 or "", validate=True)


class BackupEnd(WireModel):
    """The last line of a whole backup."""

    keys: Int64
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Digest of all lines before this one, line breaks included."""


class BackupFailure(WireModel):
    """The last line of a backup that could not be finished."""

    failed: str
    """A problem code."""
    reason: str
