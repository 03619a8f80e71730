"""Progress of an index that is being filled, and the duplicates that violate a unique one."""

from typing import Literal

from pydantic import JsonValue

from metasrv_base.wire.model import Int64, Listed, WireModel


class RegionCoverage(WireModel):
    """Progress of one region of the table."""

    region_id: str
    state: Literal["pending", "read", "filled", "violated"]
    """`read`: entries have been made, and the region has not taken them yet. `violated`: its rows
    have values twice, and it has taken none."""


class IndexCoverage(WireModel):
    """Progress of an index that a procedure fills."""

    procedure_id: str
    regions: Listed[RegionCoverage]
    rows: Int64
    """Rows whose entries the regions have taken."""
    rows_total: Int64
    """An estimate, from when it began."""
    entries: Int64


class RepeatedValues(WireModel):
    """Values of a unique index that more rows than one have."""

    values: Listed[JsonValue]
    """Values in the order of the index's columns."""
    rows: Listed[Listed[JsonValue]]
    """Primary keys of the first few."""


class IndexDuplicates(WireModel):
    """Duplicate values because of which an index is not public."""

    total: Int64
    """Number of duplicate values, over all regions."""
    first: Listed[RepeatedValues]
