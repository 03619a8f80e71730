"""The catalog as snapshots and log have it: the oldest snapshot, then each update above it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from keys.catalog.catalog import Catalog
from keys.catalog.snapshot_codec import catalog_of
from keys.commit.staged_parts import StagedParts
from keys.model.log import CatalogUpdate, CatalogUpdateKey
from keys.model.snapshot.snapshots import PartsDigest, SnapshotRef
from keys.model.staging.parts import BatchPartKey
from keys.store.kv import KeyValue
from metasrv_base.concurrency.turns import at_once
from metasrv_base.errors import Corrupt

FOLDING = (Corrupt, KeyError, AssertionError)
"""Errors of an update that cannot follow the catalog before it."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The catalog that the log tells; None if it cannot be told. `broken_at`: an update that is
    there and in its place, and cannot follow."""

    catalog: Catalog | None
    broken_at: CatalogUpdateKey | None = None
    error: str | None = None
    passed: Mapping[int, Catalog] = field(default_factory=dict)
    """The same at the version of each kept snapshot above the oldest, as far as it can be told."""


class StoredUpdate(NamedTuple):
    """An update as stored. `update` None: it cannot be read."""

    key: CatalogUpdateKey
    update: CatalogUpdate | None
    revision: int


class RawPart(NamedTuple):
    """A part of a snapshot as stored."""

    is_readable: bool
    raw: bytes


def snapshot_catalog(ref: SnapshotRef, parts: Mapping[int, RawPart]) -> Catalog:
    """The catalog that a snapshot holds. *parts*: those stored under its version, by number.

    Raises Corrupt unless they are exactly the parts that were adopted.
    """
    if sorted(parts) != list(range(ref.parts)):
        raise Corrupt(reason=f"parts {sorted(parts)}", expected=f"parts 0 to {ref.parts - 1}")
    digest, readable = PartsDigest(), list[bytes]()
    for _, stored in sorted(parts.items()):
        if not stored.is_readable:
            raise Corrupt(reason="a part cannot be read")
        digest.add(stored.raw)
        readable.append(stored.raw)
    if str(digest) != ref.digest:
        raise Corrupt(expected=f"digest {ref.digest}", found=str(digest))
    return catalog_of(ref, readable)


def parts_by_batch(stored: Iterable[KeyValue]) -> Mapping[str, Sequence[KeyValue]]:
    """Parts of large versions and of batches, as stored, by the name that refers to them."""
    start, end = BatchPartKey.under()
    parts: dict[str, list[KeyValue]] = defaultdict(list)
    for item in stored:
        if start <= item.key < end:
            try:
                parts[BatchPartKey.parse(item.key).batch].append(item)
            except Corrupt:
                continue  # a rule about keys says so
    return parts


def with_entries(update: CatalogUpdate, parts: Mapping[str, Sequence[KeyValue]]) -> CatalogUpdate:
    """An update that names parts, with the entries in them. Raises Corrupt."""
    ref = update.staged
    assert ref is not None
    whole = at_once(StagedParts.of(ref, parts.get(ref.batch, ())))
    return update.model_copy(update={"entries": at_once(whole.entries())})


def fold(base: Catalog, updates: Iterable[StoredUpdate], passing: frozenset[int]) -> Fold:
    """Applies *updates*, in order of their versions, to *base*; skips those up to the version of
    *base*."""
    catalog, passed = base, dict[int, Catalog]()
    for key, update, revision in updates:
        if key.version <= base.version:
            continue
        if update is None or key.version != catalog.version + 1:
            return Fold(None, passed=passed)  # unreadable, or behind a gap: other rules say so
        try:
            catalog = catalog.apply(update, revision)
        except FOLDING as error:
            return Fold(None, key, str(error), passed)
        if catalog.version in passing:
            passed[catalog.version] = catalog
    return Fold(catalog, passed=passed)
