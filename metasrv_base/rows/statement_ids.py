"""Ids of statements, by which a region knows a copy: the same whichever way a copy takes. Pure.

A client gives a key; what it sends is an Arrow stream of batches, or plain rows; each region is
sent its part.
"""

from dataclasses import dataclass
from hashlib import sha256

ID_CHARS = 32


@dataclass(frozen=True, slots=True)
class StatementKey:
    """Names a statement in all its copies."""

    text: str
    sent_ms: int
    """Time at which its first sender made it, by that sender's wall clock."""


def id_of_key(key: str) -> str:
    """Returns the statement id of a request, for a key of any characters."""
    return sha256(key.encode("utf-8", "replace")).hexdigest()[:ID_CHARS]


def id_of_batch(statement_id: str, number: int) -> str:
    """Returns the statement id of batch *number* of a stream."""
    return f"{statement_id[:ID_CHARS]}-{number}"


def id_of_part(statement_id: str, region: int) -> str:
    """Returns the id that a region is sent. *region*: its number."""
    return f"{statement_id}-{region}"
