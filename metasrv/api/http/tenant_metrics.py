"""Metrics of a leader about the limits of catalogs."""

from itertools import islice

from prometheus_client import CollectorRegistry, Gauge

from keys.catalog.catalog import Catalog
from procedures.scheduling.tenant_limits import COUNTED, RESOURCES, TenantReservations

CATALOGS_MAX = 100
"""Catalogs with limits that are shown, by name: each is a label of its own."""


class TenantMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._limit = Gauge(
            "metasrv_tenant_limit",
            "Limits of the first 100 catalogs that have any",
            ("catalog", "limit"),
            registry=registry,
        )
        self._use = Gauge(
            "metasrv_tenant_use",
            "What counts for these limits now, with what is being made",
            ("catalog", "limit"),
            registry=registry,
        )
        self._refused = Gauge(
            "metasrv_tenant_refusals",
            "Requests of this term that would have passed a limit",
            ("limit",),
            registry=registry,
        )

    def look(self, catalog: Catalog, tenants: TenantReservations | None) -> None:
        """Sets the gauges. *tenants* None: this server does not lead."""
        self._limit.clear()
        self._use.clear()
        for name in (*COUNTED, *RESOURCES):
            self._refused.labels(name).set(0 if tenants is None else tenants.refused[name])
        if tenants is None:
            return
        limited = sorted(info.name for info in catalog.catalogs.values() if info.limits)
        for tenant in islice(limited, CATALOGS_MAX):
            limits, use = tenants.limits(tenant), tenants.use(tenant)
            for name in COUNTED:
                limit = None if limits is None else getattr(limits, name)
                if limit is not None:
                    self._limit.labels(tenant, name).set(limit)
                    self._use.labels(tenant, name).set(getattr(use, name))
