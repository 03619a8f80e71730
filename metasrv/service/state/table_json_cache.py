"""Tables as JSON text: each is written once, until it or an address of its nodes changes.

A client asks for a table before its first row, and most tables change rarely. Only the version of
the catalog is put in anew: it moves with every change of any table.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from keys.catalog.tables.catalog_table import CatalogTable
from metasrv.service.bodies.shapes import Addresses, table_body

KEPT_MAX = 4_096  # some 4 MiB of tables of a few columns
NO_VERSION = 0
_SLOT = b'"catalog_version":'


@dataclass(frozen=True, slots=True)
class TableJson:
    """The values it was made of, by identity, and the JSON before and after the catalog's
    version."""

    table: CatalogTable
    addresses: Addresses
    before: bytes
    after: bytes

    @classmethod
    def of(cls, table: CatalogTable, addresses: Addresses) -> "TableJson":
        text = table_body(table, NO_VERSION, addresses).model_dump_json(by_alias=True).encode()
        before, slot, after = text.partition(_SLOT + b"0,")  # in a string its quotes are escaped
        assert slot, "a table without its catalog's version"
        return cls(table, addresses, before + _SLOT, b"," + after)


@dataclass(slots=True)
class TableTexts:
    """The texts of the tables that were asked for last."""

    _kept: OrderedDict[int, TableJson] = field(default_factory=OrderedDict)

    def of(self, table: CatalogTable, catalog_version: int, addresses: Addresses) -> bytes:
        """As `table_body` says it."""
        number = table.info.table_id
        text = self._kept.get(number)
        if text is None or text.table is not table or text.addresses is not addresses:
            text = self._kept[number] = TableJson.of(table, addresses)
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        self._kept.move_to_end(number)
        return b"%b%d%b" % (text.before, catalog_version, text.after)
