"""Settings and limits of catalogs (tenants), as clients send and see them."""

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from metasrv_base.wire.model import Int64, PositiveInt64, WireModel
from metasrv_base.wire.problem.problems import FieldError

RETENTION_MS_MIN = 60_000
RETENTION_MS_MAX = 3_650 * 86_400_000
READ_COMMITTED = "read-committed"


class TenantSettings(WireModel):
    """The settings of a catalog. Null: the default."""

    autocommit: bool | None = None
    """Each statement is a transaction of its own. Default, and the only value: true."""
    tx_isolation: str | None = None
    """Default, and the only value: `read-committed`."""
    drop_retention_ms: int | None = Field(default=None, ge=RETENTION_MS_MIN, le=RETENTION_MS_MAX)
    """The time for which a dropped table can be undropped. Default: the setting of the cluster."""


class TenantShare(WireModel):
    """A share of one resource of all nodes together."""

    reserved: Int64 = 0
    """All tenants together reserve no more than there is."""
    at_most: Int64 | None = None
    """At least `reserved`; null: no limit. Placement does not act upon it yet."""


class TenantLimits(WireModel):
    """The limits of a catalog. Null: none."""

    tables: Int64 | None = None
    """Living tables, with those that are being made."""
    regions: Int64 | None = None
    """Regions of those."""
    procedures: PositiveInt64 | None = None
    """Changes of its objects that are not over."""
    cpu_cores: TenantShare | None = None
    memory_bytes: TenantShare | None = None


class TenantUsage(WireModel):
    """The objects of a catalog at one version of it."""

    tables: Int64 = 0
    regions: Int64 = 0


class CatalogPatch(WireModel):
    """Body of `PATCH /v1/catalogs/{catalog}`. What it does not name stays as it is; null: the
    default, or no limit."""

    settings: TenantSettings = TenantSettings()
    limits: TenantLimits = TenantLimits()
    if_exists: bool = False
    """204 with `Catalog-Applied: false` where it does not exist, instead of 404."""


def named(part: WireModel) -> dict[str, Any]:
    """The fields that a client has named, in JSON form."""
    return part.model_dump(mode="json", include=part.model_fields_set)


def tenant_errors(settings: TenantSettings, limits: TenantLimits) -> tuple[FieldError, ...]:
    """Returns the errors that do not depend on the cluster."""
    return (*_setting_errors(settings), *_limit_errors(limits))


def _setting_errors(settings: TenantSettings) -> Iterator[FieldError]:
    if settings.autocommit is False:
        yield _unsupported("autocommit", "each statement is a transaction of its own")
    if settings.tx_isolation not in (None, READ_COMMITTED):
        yield _unsupported("tx_isolation", f"the isolation is {READ_COMMITTED}")


def _limit_errors(limits: TenantLimits) -> Iterator[FieldError]:
    for name in ("cpu_cores", "memory_bytes"):
        share: TenantShare | None = getattr(limits, name)
        if share is not None and share.at_most is not None and share.at_most < share.reserved:
            yield FieldError(pointer=f"/limits/{name}/at_most", detail="at least what is reserved")


def _unsupported(name: str, detail: str) -> FieldError:
    return FieldError(pointer=f"/settings/{name}", code="unsupported", detail=detail)
