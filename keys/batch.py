"""What goes over the committer's line, as pure functions: sealing a change and judging its answer.

`seal` turns a Txn into the bytes that will be sent, with version, submission number and commit time
filled in. `judge` reads an answer: done, refused for stale reads, refused for the fence, or refused
only because the catalog's version has another revision than the line believes (PROTOCOLS P1).
"""

from dataclasses import dataclass, replace
from enum import Enum

from base.errors import Refused
from keys.kv import TXN_BYTES_MAX, TXN_OPS_MAX, Answer, Compare, Delete, Get, KeyValue, Put, Request
from keys.log import CatalogUpdate, CatalogUpdateKey, CatalogVersion, CatalogVersionKey
from keys.txn import Stamp, Txn
from keys.value import encode

VERSION_KEY = bytes(CatalogVersionKey())


@dataclass(frozen=True, slots=True)
class Line:
    """Where the log stands, as the leader of this term knows it."""

    fence: Compare
    """The election key at the revision of the transaction that won (the term)."""
    version: int
    version_revision: int
    """mod_revision of the CatalogVersion."""
    at_ms: int
    """Commit time of that version."""
    submission: int
    """The last submission number given out."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One transaction as it is sent, again and again if need be."""

    request: Request
    stamp: Stamp
    updates: tuple[CatalogUpdate, ...]
    line: Line
    """As it stood before."""

    def line_after(self, revision: int) -> Line:
        """The line once this batch has committed at *revision*."""
        line = replace(self.line, submission=self.stamp.submission)
        if not self.updates:
            return line
        last = self.updates[-1]
        return replace(line, version=last.version, version_revision=revision, at_ms=last.at_ms)

    def committed_at(self, answer: Answer) -> int:
        """The revision of the writes, from a success or from what a refusal found in place."""
        if answer.succeeded:
            return answer.revision
        witness = answer.ranges[-1]
        return witness[0].mod_revision if witness else answer.revision


def seal(line: Line, txn: Txn, procedure: str | None, now_ms: int) -> Batch:
    """Raises Refused("ddl-too-large") before anything is sent."""
    metadata = bool(txn.entries)
    version = line.version + 1 if metadata else None
    stamp = Stamp(version, line.submission + 1, max(now_ms, line.at_ms + 1))
    writes = {k: make(stamp) if callable(make) else make for k, make in txn.writes.items()}
    compares = [
        line.fence,
        *(Compare(key, seen) for key, seen in txn.expect.items()),
        *(Compare(start, 0, end) for start, end in txn.empty),
    ]
    updates: tuple[CatalogUpdate, ...] = ()
    if version is not None:
        update = CatalogUpdate(
            version=version, at_ms=stamp.at_ms, procedure=procedure, entries=txn.entries
        )
        updates = (update,)
        compares.append(Compare(VERSION_KEY, line.version_revision))
        writes[bytes(CatalogUpdateKey(version))] = encode(update)
        writes[VERSION_KEY] = encode(CatalogVersion(version=version, at_ms=stamp.at_ms))
    request = Request(
        compares=tuple(compares),
        writes=tuple(Delete(k) if v is None else Put(k, v) for k, v in writes.items()),
        on_refusal=(
            *(Get(compare.key, compare.end, limit=1, keys_only=True) for compare in compares),
            Get(_witness(txn, writes)),
        ),
    )
    _refuse_if_too_large(request)
    return Batch(request, stamp, updates, line)


def _witness(txn: Txn, writes: dict[bytes, bytes | None]) -> bytes:
    """A key that the transaction both compares and writes: of two copies at most one takes effect.

    One that is put is preferred: it tells *which* transaction wrote it. The same in every process.
    """
    compared = txn.expect.keys() | ({VERSION_KEY} if txn.entries else set())
    witnesses = sorted(compared & writes.keys(), key=lambda key: (writes[key] is None, key))
    assert witnesses, "a transaction must write a key that it compares"
    return witnesses[0]


def _refuse_if_too_large(request: Request) -> None:
    operations = max(len(request.on_refusal), len(request.writes))
    size = sum(len(w.key) + (len(w.value) if isinstance(w, Put) else 0) for w in request.writes)
    size += sum(2 * len(compare.key) for compare in request.compares)
    if operations > TXN_OPS_MAX or size > TXN_BYTES_MAX:
        raise Refused(
            "ddl-too-large",
            operations=operations,
            operations_max=TXN_OPS_MAX,
            bytes=size,
            bytes_max=TXN_BYTES_MAX,
        )


class Verdict(Enum):
    DONE = "done"
    STALE = "stale"
    FENCED = "fenced"
    RENUMBER = "renumber"


def judge(batch: Batch, answer: Answer, *, unsettled: bool) -> tuple[Verdict, dict[str, object]]:
    """The verdict, with key, expected and found where something did not hold.

    *unsettled*: these bytes were sent before and never answered. Only then can a refusal mean that
    they had taken effect: their witness stands in the store as we would have written it. Once the
    fence is lost that proves nothing: a successor may have run the same step to the same value.
    """
    if answer.succeeded:
        return Verdict.DONE, {}
    *found, witness = answer.ranges
    failed = {
        compare.key: (compare.mod_revision, items[0].mod_revision if items else 0)
        for compare, items in zip(batch.request.compares, found, strict=True)
        if (items[0].mod_revision if items else 0) != compare.mod_revision
    }
    assert failed, "refused, yet every compare holds"
    if batch.line.fence.key in failed:
        return Verdict.FENCED, {}
    if unsettled and _is_ours(batch.request, witness):
        return Verdict.DONE, {}
    if failed.keys() == {VERSION_KEY} and batch.updates:
        return Verdict.RENUMBER, {}
    key, (expected, seen) = next((k, v) for k, v in failed.items() if k != VERSION_KEY)
    return Verdict.STALE, {"key": key.decode(), "expected": expected, "found": seen}


def _is_ours(request: Request, witness: tuple[KeyValue, ...]) -> bool:
    """Whether the witness stands as *request* leaves it. Under one fence, only we write."""
    key = request.on_refusal[-1].key
    return (Put(key, witness[0].value) if witness else Delete(key)) in request.writes
