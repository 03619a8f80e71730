"""Limits of tenants, exact whatever is under way: a leader reserves when it takes a submission.

A reservation is made between two awaits, in the order in which submissions go to the committer, so
nobody waits for another. It ends with its procedure, or when the store did not take it. The leader
that comes after computes all reservations from the records before it takes the first submission.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from keys.catalog.catalog import Catalog
from keys.catalog.maps import NOTHING
from keys.model.catalogs import CatalogLimits, ResourceShare
from keys.model.records import Lock, ProcedureRecord
from metasrv_base.errors import Conflict, MetaError, Refused
from procedures.machine import Kind, ProcedureState
from procedures.ports import NodeView
from procedures.tenant_claim import TenantClaim, tenants_of

COUNTED = ("tables", "regions", "procedures")
RESOURCES = ("cpu_cores", "memory_bytes")


@dataclass(frozen=True, slots=True)
class TenantUse:
    """A tenant's objects, with those of procedures that are not over."""

    tables: int = 0
    regions: int = 0
    procedures: int = 0


def _no_nodes() -> tuple[NodeView, ...]:
    return ()


@dataclass(slots=True)
class TenantReservations:
    """The limits of all tenants, and what the procedures of one term have reserved."""

    applied: Callable[[], Catalog] = Catalog
    """The catalog, no older than any commit of the term."""
    nodes: Callable[[], tuple[NodeView, ...]] = _no_nodes
    refused: Counter[str] = field(default_factory=Counter)
    """Submissions refused since the term began, by the name of the limit."""
    _claims: dict[str, tuple[TenantClaim, ...]] = field(default_factory=dict)
    """Claims by procedure."""
    _by_tenant: defaultdict[str, dict[str, TenantClaim]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _changes: dict[str, frozenset[str]] = field(default_factory=dict)
    """Procedure -> the tenants whose objects it changes."""
    _changing: Counter[str] = field(default_factory=Counter)
    """Tenant -> how many those are."""

    def use(self, tenant: str) -> TenantUse:
        catalog = self.applied()
        size = catalog.sizes.get(tenant, NOTHING)
        tables, regions = size.tables, size.regions
        for claim in self._by_tenant.get(tenant, {}).values():
            for table_id, count in claim.tables.items():
                table = catalog.tables.get(table_id)
                if table is None or table.dropped_at_ms is not None:
                    tables, regions = tables + 1, regions + count
        return TenantUse(tables, regions, self._changing[tenant])

    def limits(self, tenant: str) -> CatalogLimits | None:
        """The limits that hold for a submission now: the lowest of those stored and those on their
        way. None: there are none."""
        info = self.applied().catalogs.get(tenant)
        every = [] if info is None or info.limits is None else [info.limits]
        for claim in self._by_tenant.get(tenant, {}).values():
            if claim.limits is not None:
                every.append(claim.limits)  # noqa: PERF401  # each create asks: a call less
        if not every:
            return None
        lowest = {name: _lowest(getattr(limits, name) for limits in every) for name in COUNTED}
        return CatalogLimits(**lowest)

    def reserve(
        self, procedure: str, kind: Kind[Any], state: ProcedureState, locks: tuple[Lock, ...]
    ) -> None:
        """Idempotent. *locks*: those of *kind* in *state*, which take long where they are many."""
        claims = kind.claims(state, self.applied())
        self._change(procedure, _changed(locks, claims))
        if claims:
            self._claims[procedure] = claims
        for claim in claims:
            self._by_tenant[claim.catalog][procedure] = claim

    def take_in(self, procedure: str, record: ProcedureRecord, kind: Kind[Any] | None) -> None:
        """Reserves for a stored procedure. One that cannot be read counts by its locks alone."""
        if procedure in self._claims or procedure in self._changes or record.parent is not None:
            return
        with suppress(ValidationError, LookupError, TypeError):  # its owner parks it, and says why
            if kind is not None:
                state = kind.state.model_validate(record.state)
                self.reserve(procedure, kind, state, record.locks)
                return
        self._change(procedure, _changed(record.locks, ()))

    def take_again(self, procedure: str, record: ProcedureRecord, kind: Kind[Any] | None) -> None:
        """Reserves what its record says by now, as the next leader would."""
        self.release(procedure)
        self.take_in(procedure, record, kind)

    def _change(self, procedure: str, tenants: frozenset[str]) -> None:
        if tenants and procedure not in self._changes:
            self._changes[procedure] = tenants
            self._changing.update(tenants)

    def release(self, procedure: str) -> None:
        """Idempotent. What it has made is in the catalog by now."""
        for tenant in self._changes.pop(procedure, ()):
            self._changing[tenant] -= 1
            if not self._changing[tenant]:
                del self._changing[tenant]
        for claim in self._claims.pop(procedure, ()):
            claims = self._by_tenant[claim.catalog]
            del claims[procedure]
            if not claims:
                del self._by_tenant[claim.catalog]

    def refusal(
        self, kind: Kind[Any], state: ProcedureState, locks: tuple[Lock, ...]
    ) -> MetaError | None:
        """The refusal of a submission that would pass a limit; None: there is room for it."""
        claims = kind.claims(state, self.applied())
        changed = _changed(locks, claims)
        others = changed
        for claim in claims:
            others = others - {claim.catalog}
        for claim in (*claims, *map(TenantClaim, sorted(others))):
            error = self._passes(claim, int(claim.catalog in changed))
            if error is None and claim.limits is not None:
                error = self._cannot_hold(claim.catalog, claim.limits)
            if error is not None:
                return error
        return None

    def _passes(self, claim: TenantClaim, procedures: int) -> MetaError | None:
        limits = self.limits(claim.catalog) or claim.limits
        if limits is None:
            return None
        demand = TenantUse(len(claim.tables), sum(claim.tables.values()), procedures)
        use = self.use(claim.catalog)
        for name in COUNTED:
            at_most, request = getattr(limits, name), getattr(demand, name)
            if at_most is not None and request and getattr(use, name) + request > at_most:
                return _passed(claim.catalog, name, at_most, getattr(use, name), request)
        return None

    def _cannot_hold(self, tenant: str, limits: CatalogLimits) -> MetaError | None:
        """Limits below what there is are refused, so that what there is never passes a limit.
        Procedures come to their end by themselves: their limit may be any."""
        use = self.use(tenant)
        for name in ("tables", "regions"):
            at_most = getattr(limits, name)
            if at_most is not None and getattr(use, name) > at_most:
                return _passed(tenant, name, at_most, getattr(use, name), 0)
        for name in RESOURCES:
            reserved = getattr(limits, name).reserved
            if reserved and (error := self._too_much(tenant, name, reserved)) is not None:
                return error
        return None

    def _too_much(self, tenant: str, name: str, request: int) -> MetaError | None:
        """Refuses what all tenants together cannot reserve of the registered nodes."""
        capacity = sum(getattr(node, name) for node in self.nodes())
        use = sum(share.reserved for share in self._shares(name, but=tenant))
        if use + request <= capacity:
            return None
        return _passed(tenant, name, capacity, use, request)

    def _shares(self, name: str, *, but: str) -> Iterator[ResourceShare]:
        """The larger of the stored share of each other tenant and the one on its way."""
        catalog = self.applied()
        for tenant in catalog.catalogs.keys() | self._by_tenant.keys():
            info = catalog.catalogs.get(tenant)
            every = [claim.limits for claim in self._by_tenant.get(tenant, {}).values()]
            every.append(None if info is None else info.limits)
            shares = [getattr(limits, name) for limits in every if limits is not None]
            if shares and tenant != but:
                yield max(shares, key=lambda share: share.reserved)


def _changed(locks: tuple[Lock, ...], claims: tuple[TenantClaim, ...]) -> frozenset[str]:
    """Tenants of whose changes it is one. A change of limits is none: it is the way out."""
    changed = tenants_of(locks)
    for claim in claims:
        if claim.limits is not None:
            changed.discard(claim.catalog)
    return frozenset(changed)


def _lowest(limits: Iterator[int | None]) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _passed(tenant: str, limit: str, at_most: int, use: int, request: int) -> MetaError:
    """422 if the request alone is above the limit, so that no drop makes room for it."""
    facts: Mapping[str, object] = {
        "catalog": tenant,
        "limit": limit,
        "at_most": at_most,
        "use": use,
        "request": request,
    }
    if request > at_most:
        return Refused("above-tenant-limit", **facts)
    return Conflict("tenant-limit", **facts)
