"""Tables as JSON text: each is written once, until it or an address of its nodes changes.

A client asks for a table before its first row, and most tables change rarely. Only the version of
the catalog is put in anew: it moves with every change of any table.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from keys.catalog.catalog import Catalog
from keys.catalog.parts.placing import Placing, PlacingNames
from keys.catalog.tables.catalog_table import CatalogTable
from metasrv.service.bodies.shapes import Addresses, table_body

KEPT_MAX = 4_096  # some 4 MiB of tables of a few columns
NO_VERSION = 0
_SLOT = b'"catalog_version":'


@dataclass(frozen=True, slots=True)
class TableJson:
    """The values it was made of, by identity but for the names, and the JSON before and after the
    catalog's version."""

    table: CatalogTable
    addresses: Addresses
    names: PlacingNames
    before: bytes
    after: bytes

    @classmethod
    def of(cls, table: CatalogTable, addresses: Addresses, placing: Placing) -> "TableJson":
        body = table_body(table, NO_VERSION, addresses, placing)
        text = body.model_dump_json(by_alias=True).encode()
        before, slot, after = text.partition(_SLOT + b"0,")  # in a string its quotes are escaped
        assert slot, "a table without its catalog's version"
        return cls(table, addresses, placing.names_of(table.info), before + _SLOT, b"," + after)

    def is_of(self, table: CatalogTable, placing: Placing, addresses: Addresses) -> bool:
        """A placement or tablespace may have another name, though its tables did not change."""
        is_same = self.table is table and self.addresses is addresses
        return is_same and self.names == placing.names_of(table.info)


@dataclass(slots=True)
class TableTexts:
    """The texts of the tables that were asked for last."""

    _kept: OrderedDict[int, TableJson] = field(default_factory=OrderedDict)

    def of(self, table: CatalogTable, catalog: Catalog, addresses: Addresses) -> bytes:
        """Returns the JSON of `table_body`, of a table of *catalog*."""
        number, placing = table.info.table_id, catalog.placing
        text = self._kept.get(number)
        if text is None or not text.is_of(table, placing, addresses):
            text = self._kept[number] = TableJson.of(table, addresses, placing)
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        self._kept.move_to_end(number)
        return b"%b%d%b" % (text.before, catalog.version, text.after)
