"""Pins of the catalog log: who needs which version of it, since when, and why."""

from collections.abc import Iterable, Iterator

import structlog

from keys.catalog.log.revision_pins import StoredRevisionPin
from keys.commit.committer import StaleRead
from keys.commit.txn import Txn
from keys.model.snapshot.pins import CatalogPin, CatalogPinKey
from keys.store.readable import KeyRow, readable, skip_silently
from keys.store.scan import scan
from metasrv.holders.holder_registry import HolderEntry
from metasrv.leadership.log.log_policy import LogPin
from metasrv.leadership.term import Term
from procedures.engine.active_procedure import ActiveProcedure

PINS_MAX = 128  # that users set at once

StoredPin = KeyRow[CatalogPinKey, CatalogPin]

log = structlog.get_logger()


async def stored_pins(term: Term) -> tuple[StoredPin, ...]:
    """The pins that users have set, those too that have expired."""
    ports = term.ports
    items, _ = await scan(ports.kv, CatalogPinKey.under(), deadline_ms=ports.deadline_ms)
    return tuple(readable(CatalogPinKey, CatalogPin, items, skip_silently))


async def log_pins(term: Term, now_ms: int) -> tuple[LogPin, ...]:
    """Everything that keeps the log, the oldest version first. Raises as reads."""
    pins = [
        *(user_pin(row.value) for row in await stored_pins(term) if _lives(row.value, now_ms)),
        *holder_pins(term.holders.book.entries()),
        *procedure_pins(entry for _, entry in term.manager.living()),
    ]
    return tuple(sorted(pins, key=lambda pin: (pin.version, pin.what)))


async def delete_expired(term: Term, now_ms: int) -> int:
    """Returns the number of pins that it deleted. Raises as reads and `Committer.commit`."""
    deleted = 0
    for row in await stored_pins(term):
        if _lives(row.value, now_ms):
            continue
        try:
            await term.committer.commit(Txn().expecting(row.key, row.revision).delete(row.key))
        except StaleRead:
            continue  # it was renewed meanwhile
        deleted += 1
    return deleted


async def delete_unread(term: Term, pins: Iterable[StoredRevisionPin], now_ms: int) -> int:
    """Deletes those of *pins* that have expired; their readers have died, or take too long. Returns
    their number. Raises as `Committer.commit`."""
    deleted = 0
    for pin in pins:
        if pin.lives(now_ms):
            continue
        try:
            await term.committer.commit(Txn().expecting(pin.key, pin.mod_revision).delete(pin.key))
        except StaleRead:
            continue  # it was renewed meanwhile, or its reader has ended
        value, age_ms = pin.value, now_ms - pin.value.since_ms
        log.info("revision_pin_expired", what=value.what, server=value.server, age_ms=age_ms)
        deleted += 1
    return deleted


def _lives(pin: CatalogPin, now_ms: int) -> bool:
    return now_ms < pin.expires_at_ms


def user_pin(pin: CatalogPin) -> LogPin:
    reason = f"{pin.reason} ({pin.by})"
    return LogPin(f"pin {pin.name}", pin.version, pin.since_ms, reason, pin.expires_at_ms)


def holder_pins(entries: Iterable[HolderEntry]) -> Iterator[LogPin]:
    """A holder goes on from the version that it has; one that was not heard yet may have any."""
    for entry in entries:
        holder = entry.holder
        if entry.have is None:
            reason = "registered under an earlier leader, and not heard since"
        else:
            reason = "its statements are planned by this version or a later one"
        version = entry.have or 0
        yield LogPin(f"holder {holder.holder_id}", version, holder.registered_at_ms, reason)


def procedure_pins(entries: Iterable[ActiveProcedure]) -> Iterator[LogPin]:
    """One that runs keeps the versions that it made. One that is parked, paused or poisoned may
    stay so for months: it keeps only what its kind declares."""
    for entry in entries:
        record = entry.held.record
        what, since_ms = f"procedure {entry.held.procedure}", record.submitted_at_ms
        stops = entry.parked or record.paused_at_ms is not None or record.poisoned
        if not stops:
            made = [each.catalog_version for each in record.transitions] or [record.catalog_version]
            versions = [version for version in made if version is not None]
            if versions:
                yield LogPin(what, min(versions) - 1, since_ms, "it runs, and made a later version")
        version = entry.kind.pins(record) if entry.kind is not None else None
        if version is not None:
            yield LogPin(what, version, since_ms, "its kind needs it, whether it runs or not")
