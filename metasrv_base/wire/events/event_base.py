"""The facts of the version behind an event of the catalog."""

from pydantic import ConfigDict

from metasrv_base.wire.model import PositiveInt64, WireModel


class CatalogEventBase(WireModel):
    """One thing that a version of the catalog changed. All events of a version come together, in
    the order in which the version made them."""

    model_config = ConfigDict(
        validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )

    type: str
    version: PositiveInt64
    """The version of the catalog that has it."""
    committed_at: str
    """RFC 3339; commit of the version."""
    by: str | None
    """The principal; null: the bootstrap, or a log of an earlier format."""
    request_id: str | None
    procedure_id: str | None
