"""Catalogs (tenants) and schemas (databases): the names under which tables stand."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from keys.key import Key
from keys.value import StoredModel

DEFAULT_CATALOG = "main"
DEFAULT_SCHEMA = "public"


class CatalogInfo(StoredModel):
    catalog_id: int
    name: str
    options: dict[str, str] = Field(default_factory=dict)
    created_at_ms: int
    dropping: str | None = None
    """Id of the procedure that drops it with all it holds: no reader sees it any more."""


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


@dataclass(frozen=True, slots=True)
class SchemaNameKey(Key[SchemaInfo]):
    template: ClassVar[str] = "__schema_name/{catalog}/{schema}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = SchemaInfo

    catalog: str
    schema: str
