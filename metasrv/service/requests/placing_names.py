"""Placements and tablespaces as requests name them. Pure."""

from dataclasses import dataclass

from keys.catalog.catalog import Catalog
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from metasrv.service.nearby import hint
from metasrv.service.requests.ddl_request import must_be_identifiers, must_have_catalog
from metasrv_base.errors import NotFound


@dataclass(frozen=True, slots=True)
class FullTablespaceName:
    catalog: str
    tablespace: str

    def __post_init__(self) -> None:
        must_be_identifiers(self.catalog, self.tablespace)

    @property
    def full(self) -> str:
        return f"{self.catalog}.{self.tablespace}"


def placement_named(catalog: Catalog, name: str) -> PlacementInfo:
    """Raises NotFound, with what comes close."""
    info = catalog.placing.placements.get(name)
    if info is None:
        close = hint(name, catalog.placing.placements)
        raise NotFound("not-found", what="placement", name=name, **close)
    return info


def tablespace_named(catalog: Catalog, name: FullTablespaceName) -> TablespaceInfo:
    """Raises NotFound, saying which part does not exist, and what comes close."""
    must_have_catalog(catalog, name.catalog)
    spaces = catalog.placing.tablespaces_of(name.catalog)
    info = spaces.get(name.tablespace)
    if info is None:
        raise NotFound(
            "not-found", what="tablespace", name=name.full, **hint(name.tablespace, spaces)
        )
    return info
