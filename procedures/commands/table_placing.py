"""The placement and the tablespace of a table that comes or comes back: compared as they were when
it was judged (docs/decisions/0231)."""

from typing import Any

from keys.commit.entry_writes import MetadataView
from keys.key import Key
from keys.model.placing.placements import (
    DEFAULT_PLACEMENT_ID,
    DEFAULT_PROFILE,
    PlacementInfo,
    PlacementKey,
)
from keys.model.placing.tablespaces import TablespaceKey
from keys.model.tables import TableInfo
from metasrv_base.errors import Conflict, NotFound
from metasrv_base.values.frozen import frozen
from procedures.commands.placement_commands import PlacementInUse
from procedures.commands.tablespace_commands import TablespaceInUse


@frozen
class TablePlacingNames:
    """The names of what a table uses; None: no more than every table does."""

    placement: str | None = None
    tablespace: str | None = None

    def keys(self, catalog: str) -> tuple[Key[Any], ...]:
        return (
            *([] if self.placement is None else [PlacementKey(self.placement)]),
            *([] if self.tablespace is None else [TablespaceKey(catalog, self.tablespace)]),
        )

    def must_hold(self, info: TableInfo, view: MetadataView) -> None:
        """Raises NotFound for what the table uses and is gone; Conflict where a name means another
        placement, profile or tablespace by now."""
        if info.placement_id is not None or info.storage_profile is not None:
            if self.placement is None:
                raise NotFound(what="placement", name=str(info.placement_id))
            number = info.placement_id or DEFAULT_PLACEMENT_ID
            _must_have_profile(PlacementInUse(self.placement, number).standing(view), info)
        if info.tablespace_id is not None:
            if self.tablespace is None:
                raise NotFound(what="tablespace", name=str(info.tablespace_id))
            TablespaceInUse(info.catalog, self.tablespace, info.tablespace_id).standing(view)


DEFAULTS = TablePlacingNames()


def _must_have_profile(placement: PlacementInfo, info: TableInfo) -> None:
    name = info.storage_profile or DEFAULT_PROFILE
    profile = placement.profile(name)
    if profile is None:
        raise NotFound(what="storage profile", name=f"{placement.name}.{name}")
    if (profile.engine, profile.options) != (info.engine, info.engine_options):
        raise Conflict("schema-conflict", name=f"{placement.name}.{name}")
