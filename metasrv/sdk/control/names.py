"""Names of schemas and tables as people write them, and the paths they mean."""

from dataclasses import dataclass
from urllib.parse import quote

from metasrv_base.errors import Refused

CATALOG = "main"
SCHEMA = "public"


@dataclass(frozen=True, slots=True)
class SchemaName:
    """`public` or `main.public`."""

    catalog: str
    schema: str

    @classmethod
    def parse(cls, text: str) -> "SchemaName":
        """Raises Refused `invalid-identifier`."""
        parts = _parts(text, 2)
        return cls(*[CATALOG, SCHEMA][: 2 - len(parts)], *parts)

    @property
    def path(self) -> str:
        return f"/v1/catalogs/{quote(self.catalog, safe='')}/schemas/{quote(self.schema, safe='')}"

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}"


@dataclass(frozen=True, slots=True)
class TableName:
    """`flights`, `public.flights` or `main.public.flights`."""

    catalog: str
    schema: str
    table: str

    @classmethod
    def parse(cls, text: str) -> "TableName":
        """Raises Refused `invalid-identifier`."""
        parts = _parts(text, 3)
        return cls(*[CATALOG, SCHEMA][: 3 - len(parts)], *parts)

    @property
    def within(self) -> SchemaName:
        return SchemaName(self.catalog, self.schema)

    @property
    def path(self) -> str:
        return f"{self.within.path}/tables/{quote(self.table, safe='')}"

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.table}"


def _parts(text: str, most: int) -> list[str]:
    parts = text.split(".")
    if len(parts) > most or not all(parts):
        form = ".".join(("CATALOG", "SCHEMA", "TABLE")[:most])
        reason = f"it is {form} at most, and no part is empty"
        raise Refused("invalid-identifier", name=text or "the empty text", reason=reason)
    return parts
