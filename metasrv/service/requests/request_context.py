"""A change as a client asks for it, beside its body: who, under which key, on what conditions."""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from keys.model.records import ClientRequirements
from metasrv.service.bodies.shapes import table_etag
from metasrv_base.errors import Conflict, Refused
from metasrv_base.values.frozen import frozen
from metasrv_base.wire.api.placing.placements import placement_etag

ANONYMOUS = "anonymous"  # the principal where no tokens are asked for
WAIT_S_MAX = 60
_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")
_VERSION_TAG = re.compile(r'"([tp])([1-9][0-9]{0,15})-([1-9][0-9]{0,15})"')
_TYPES: Mapping[str, Literal["table", "placement"]] = {"t": "table", "p": "placement"}
_ANY_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')
_PREFERENCE = re.compile(r"wait=(?:\"([0-9]{1,9})\"|([0-9]{1,9}))")


class VersionTag(NamedTuple):
    """A table or placement at one of its versions, as an ETag names it."""

    type: Literal["table", "placement"]
    id: int
    version: int

    def __str__(self) -> str:
        etag = table_etag if self.type == "table" else placement_etag
        return etag(self.id, self.version)


@frozen
class RequestContext:
    """One request for a change."""

    method: str
    path: str
    body: Any
    """The body as it was parsed; None: there was none."""
    request_id: str
    query: str = ""
    """The query as it was sent."""
    body_bytes: int | None = None
    """The length of the body as it was sent; None: not known."""
    principal: str = ANONYMOUS
    key: str | None = None
    """Idempotency-Key."""
    if_match: VersionTag | None = None
    """If-Match, as an object at one of its versions."""
    wait_ms: int | None = None
    """Prefer: wait; None: answer as soon as it is stored."""
    queue: bool = True
    """False (`on_conflict=fail`): refused instead of waiting for another change's locks."""
    dry_run: bool = False
    cascade: bool = False
    """Whether a drop takes all that is inside."""
    if_exists: bool = False
    """Whether the change of an object that does not exist is a success that changes nothing."""
    grace_s: int = 0
    """Seconds for which a dropped part of a table can be undropped."""

    @property
    def fingerprint(self) -> str:
        """A digest of method, path and canonical body: an equal request has an equal one.

        Not by orjson, which refuses the integers beyond 64 bits that a default may hold.
        """
        body = json.dumps(self.body, sort_keys=True, separators=(",", ":"))
        more = [b"cascade"] if self.cascade else []
        more += [b"if_exists"] if self.if_exists else []
        more += [b"grace %d" % self.grace_s] if self.grace_s else []
        return _digest(self.method.encode(), self.path.encode(), body.encode(), *more)

    def digest(self, part: int = 0) -> str | None:
        """The name of its idempotency key; *part* of a request that makes several procedures."""
        if self.key is None:
            return None
        parts = [self.principal.encode(), self.key.encode()]
        return _digest(*parts, *([str(part).encode()] if part else []))

    def client(
        self,
        *,
        part: int = 0,
        table_id: int | None = None,
        expected_epoch: int | None = None,
    ) -> ClientRequirements:
        """Returns the part of the request that the procedure's record keeps."""
        query = {"query": self.query} if self.query else {}
        return ClientRequirements(
            submitted_by=self.principal,
            request_id=self.request_id,
            statement={"method": self.method, "path": self.path, **query, "body": self.body},
            idempotency=self.digest(part),
            if_version=self.if_match.version if self.if_match else None,
            table_id=table_id,
            expected_epoch=expected_epoch,
            if_exists=self.if_exists,
        )

    def require_version(self, name: str, tag: VersionTag) -> None:
        """Raises Conflict("version-mismatch") unless If-Match names this object and version."""
        if self.if_match not in (None, tag):
            raise Conflict(
                "version-mismatch", name=name, expected=str(self.if_match), found=str(tag)
            )

    def require_no_version(self) -> None:
        """If-Match matches nothing where there is neither a table nor a placement (RFC 9110,
        13.1.1)."""
        if self.if_match is not None:
            neither = "neither a table nor a placement"
            raise Conflict("version-mismatch", expected=str(self.if_match), found=neither)


def _digest(*parts: bytes) -> str:
    """A digest of *parts* with their lengths, so that no two lists of parts run together."""
    whole = sha256()
    for part in parts:
        whole.update(b"%d:" % len(part) + part)
    return whole.hexdigest()


def idempotency_key(key: str | None) -> str | None:
    """Raises Refused("bad-idempotency-key")."""
    if key is not None and not _KEY.fullmatch(key):
        raise Refused("bad-idempotency-key")
    return key


def if_match(header: str | None) -> VersionTag | None:
    """The object and version that If-Match requires; None: none, or `*`.

    A tag that no table and no placement has matches nothing: Conflict. What is no tag at all:
    Refused.
    """
    text = "*" if header is None else header.strip()
    if text == "*":
        return None
    if match := _VERSION_TAG.fullmatch(text):
        return VersionTag(_TYPES[match[1]], int(match[2]), int(match[3]))
    if _ANY_TAG.fullmatch(text):
        reason = "no table or placement has such an ETag"
        raise Conflict("version-mismatch", expected=text, reason=reason)
    raise Refused("invalid-request", expected="If-Match: one ETag, as GET answers it")


def prefer_wait(header: str | None) -> int | None:
    """`Prefer: wait=N` in ms, at most 60 s; preferences that are not understood are ignored
    (RFC 7240)."""
    for part in (header or "").split(","):
        match = _PREFERENCE.fullmatch(part.partition(";")[0].strip().lower())
        if match:
            return min(int(match[1] or match[2]), WAIT_S_MAX) * 1000
    return None
