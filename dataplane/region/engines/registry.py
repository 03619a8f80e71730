"""The engines of this program, by name: a new one is a file beside this one, and a line here."""

from collections.abc import Mapping

from dataplane.region.engines.engine import RegionEngine
from dataplane.region.engines.lsm import LsmEngine
from dataplane.region.engines.memory import MemoryEngine
from metasrv_base.engines import LSM, MEMORY, must_be_options
from metasrv_base.errors import Refused
from metasrv_base.schema.scalars import JsonScalar

ENGINES: Mapping[str, RegionEngine] = {LSM: LsmEngine(), MEMORY: MemoryEngine()}


def engine_of(
    engines: Mapping[str, RegionEngine], name: str, options: Mapping[str, JsonScalar]
) -> RegionEngine:
    """Raises Refused: `unsupported`, with those that there are, for an engine that is not in
    *engines*, `invalid-request` for an option that it does not take."""
    engine = engines.get(name)
    if engine is None:
        raise Refused("unsupported", what=f"engine {name}", engine=name, has=sorted(engines))
    must_be_options(name, options)
    return engine
