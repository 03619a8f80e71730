"""Catalogs (tenants) and schemas (databases): the names under which tables stand."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from keys.key import Key
from keys.value import StoredModel, StoredPart
from metasrv_base.values.frozen import frozen

DEFAULT_CATALOG = "main"
DEFAULT_SCHEMA = "public"
TENANT_FORMAT = 2
"""Format of a catalog with settings or limits."""


def _is_none(value: object) -> bool:
    return value is None


class CatalogSettings(StoredPart):
    """The settings of a tenant; each has a default."""

    autocommit: bool = True
    """Whether each statement is a transaction of its own."""
    tx_isolation: str = "read-committed"
    """Isolation of a transaction from those beside it."""
    drop_retention_ms: int | None = None
    """The time for which a dropped table can be undropped; None: that of the cluster."""


class ResourceShare(StoredPart):
    """A tenant's share of one resource of all nodes together."""

    reserved: int = 0
    at_most: int | None = None
    """The limit; None for no limit."""


class CatalogLimits(StoredPart):
    """The limits of a tenant; None: no limit."""

    tables: int | None = None
    """Living tables, with those that are being made."""
    regions: int | None = None
    """Regions of those."""
    procedures: int | None = None
    """Changes of its objects that are not over."""
    cpu_cores: ResourceShare = ResourceShare()
    memory_bytes: ResourceShare = ResourceShare()


class CatalogInfo(StoredModel):
    """Format 2 has settings or limits; format 1 has neither."""

    newest_format: ClassVar[int] = TENANT_FORMAT

    catalog_id: int
    name: str
    options: dict[str, str] = Field(default_factory=dict)
    created_at_ms: int
    dropping: str | None = None
    """Id of the procedure that drops it with all it holds: no reader sees it any more."""
    settings: CatalogSettings | None = Field(default=None, exclude_if=_is_none)
    """The settings; None for the defaults."""
    limits: CatalogLimits | None = Field(default=None, exclude_if=_is_none)
    """The limits; None if there are none."""

    def as_tenant(self, settings: CatalogSettings, limits: CatalogLimits) -> "CatalogInfo":
        """Replaces settings and limits, in the lowest format that can hold them."""
        facts = {
            "settings": None if settings == CatalogSettings() else settings,
            "limits": None if limits == CatalogLimits() else limits,
        }
        number = TENANT_FORMAT if any(facts.values()) else 1
        return self.model_copy(update={**facts, "format": number})

    @property
    def own_settings(self) -> CatalogSettings:
        return self.settings or CatalogSettings()

    @property
    def own_limits(self) -> CatalogLimits:
        return self.limits or CatalogLimits()


@dataclass(frozen=True, slots=True)
class CatalogNameKey(Key[CatalogInfo]):
    template: ClassVar[str] = "__catalog_name/{catalog}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = CatalogInfo

    catalog: str


class SchemaInfo(StoredModel):
    schema_id: int
    catalog: str
    name: str
    options: dict[str, str] = Field(default_factory=dict)
    created_at_ms: int
    dropping: str | None = None
    """Id of the procedure that drops it; its tables are hidden with it and removed one by one."""


@frozen
class SchemaNameKey(Key[SchemaInfo]):
    template: ClassVar[str] = "__schema_name/{catalog}/{schema}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = SchemaInfo

    catalog: str
    schema: str
