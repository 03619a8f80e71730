"""Tables whose copies are moved, added and removed, while their placement comes to prefer other
zones. Once the faults are over, every region is led in the best zone in which it has a copy, and
stays there."""

from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, replace
from typing import Any

from keys.model.placing.placements import DEFAULT_PLACEMENT, PlacementInfo, PlacementKey
from keys.model.tables import RegionRoute
from keys.value import decode
from metasrv.sdk.control.placements import Placements
from procedures.steps.placing import zone_rank
from tests.sim.clients.client import Session, pursued
from tests.sim.plots.copies.moved_copies import MOVED_COPIES, MovedCopies

PREFERRED = replace(MOVED_COPIES, name="preferred", owned=8)
THINK_MS = 10_000
ALTERED = "a placement that came to prefer other zones"
FOLLOWED = "a leader in a preferred zone at the end"


def zone_of(node: str) -> str:
    """The zone of a node of a simulated cluster, which is alone in it."""
    return f"zone-{node}"


@dataclass
class PlacementOperator:
    """An operator who prefers two zones after others."""

    session: Session
    nodes: tuple[str, ...]

    async def run(self, changes: int) -> None:
        placements = Placements(self.session.service)
        for _ in range(changes):
            await self.session.think(THINK_MS)
            zones = list(map(zone_of, self.session.random.sample(self.nodes, 2)))

            async def ask(key: str, zones: list[str] = zones) -> Any:
                patch = {"preferred_zones": zones}
                return await placements.alter(DEFAULT_PLACEMENT, patch, idempotency_key=key)

            end = await pursued(self.session, ask)
            if end.error is None:
                self.session.count(ALTERED)


class Preferred(MovedCopies):
    def _operators(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        yield from super()._operators()
        nodes = tuple(node.name for node in self.world.nodes)
        operator = PlacementOperator(self.world.session("placement"), nodes)
        yield "placement", operator.run(self.length.owned)

    def _has_settled(self) -> bool:
        return super()._has_settled() and not self._led_elsewhere()

    def _tell(self) -> None:
        super()._tell()
        for region in self._led_elsewhere():
            self.world.wrong(f"{region} is led outside of {self._zones()}")

    async def _judge(self) -> None:
        await super()._judge()
        zones = self._zones()
        led = [zone_rank(zone_of(region.leader), zones) for _, region in self._every_region()]
        self.world.weather.sometimes[FOLLOWED] += sum(rank < len(zones) for rank in led)

    def _led_elsewhere(self) -> list[RegionRoute]:
        """Regions of which a copy is in a better zone than the leader."""
        zones = self._zones()
        return [
            region
            for _, region in self._every_region()
            if any(
                zone_rank(zone_of(node), zones) < zone_rank(zone_of(region.leader), zones)
                for node in region.in_sync
            )
        ]

    def _zones(self) -> tuple[str, ...]:
        for item in self.world.kv._store.scan(*PlacementKey.under()):
            info = decode(PlacementInfo, item.value, key=item.key.decode())
            if info.name == DEFAULT_PLACEMENT:
                return info.preferred_zones
        return ()
