"""A copy fetches the files of its leader: those of the manifest, if the leader's log does not reach
back to it, or those that a record of the log names (P5.9)."""

from functools import partial
from operator import eq, not_
from typing import Annotated

from pydantic import ConfigDict, Field

from metasrv_base.wire.model import Int64, PositiveInt64, RegionId, WireModel

PIECE_BYTES_MAX = 1 << 20
"""The longest piece of a file in one answer."""
SESSION_CHARS_MAX = 64
FILE_NUMBER_MAX = (1 << 31) - 1
NAMED_FILES_MAX = 1_000
NAME_CHARS_MAX = 300


class CopySessionRequest(WireModel):
    """`POST /node/v1/copies/sessions`, to the node that leads a region."""

    cluster_id: str
    node_id: str
    """The id of the node that is asked."""
    region_id: RegionId
    epoch: PositiveInt64
    """The epoch of the leader that the copy follows."""
    root: str
    """The root of the leader."""
    copy_node: str
    """The node of the copy that fetches, for the log."""
    files: list[Annotated[str, Field(max_length=NAME_CHARS_MAX)]] = Field(
        default_factory=list, max_length=NAMED_FILES_MAX, exclude_if=not_
    )
    """Names of data files in the root of the leader, which a record of its log names: the session
    has these alone, numbered from 1 on. A file that the leader has no more is 404 `not-found`.
    Empty: the files of the manifest."""
    sequence: Int64 = Field(default=0, ge=0, exclude_if=partial(eq, 0))
    """A position that the files of the manifest must reach: the copy knows it as common."""


class CopySession(WireModel):
    """Files that stay on the leader's disk while they are fetched. The session ends when it is not
    used for 30 s, and 1 h after it began."""

    session: Annotated[str, Field(max_length=SESSION_CHARS_MAX)]
    manifest_bytes: Int64
    """The length of file 0, the manifest at which the session began. Its files of statements have
    the numbers from 1 on, its data files the next, each in its order. 0: the request has named the
    files."""
    manifest_checksum: str
    """crc32 of file 0, as 8 hexadecimal digits."""


class FetchBody(WireModel):
    """The files that a copy fetches from its leader, whose log does not reach back to it."""

    bytes: Int64
    """Bytes that are here."""
    bytes_total: Int64
    """Bytes of all files that it needs."""


class FetchingRegion(WireModel):
    """The part of `GET /node/v1/regions/{region_id}` that says what a copy fetches now."""

    model_config = ConfigDict(extra="ignore")

    fetch: FetchBody | None = None
    """Null: nothing."""
