"""Servers start anew, and an operator compacts etcd under what they read: a server begins again a
bounded number of times, and then ends with an error that says so."""

from dataclasses import replace

from keys.catalog.log import loading
from keys.catalog.log.revision_pins import RESTARTS_MAX
from metasrv.sdk.control.namespaces import Catalogs
from tests.sim.clients.client import pursued
from tests.sim.cluster.cuts import Cuts
from tests.sim.cluster.servers import Metasrv
from tests.sim.length import SHORT
from tests.sim.planted.mistakes import Bugs

COMPACTED = replace(SHORT, name="compacted", users=1, scans=0, changes=2, owned=3)
ROUNDS = 5
CALM_MS = 1_500
LOADED_MS_MAX = 60_000
LARGE = Bugs(patches=((loading, "PINNED_BYTES", 1),))
"""Every snapshot is one that takes long to read, so that its revision is pinned."""
AGAIN = "a server that loaded behind compactions"
FAILED = "catalog_load_failed"
GAVE_UP = "a server that gave up to load, and was started again"


class Compacted(Cuts):
    """Beside a client that cuts the log below new snapshots, and a little of everything."""

    async def _trouble(self) -> None:
        world, random = self.world, self.world.random
        world.honest.add(FAILED)
        world.weather.storm = world.weather.store_storm = 0.2
        world.weather.is_tried = True
        operator = world.session("operator")
        catalogs = Catalogs(operator.service)
        await pursued(operator, lambda _: catalogs.snapshot(drop_history=True))
        with LARGE.planted():
            for _ in range(ROUNDS):
                await world.sleep_ms(random.uniform(0, CALM_MS))
                await self._starts_anew(random.choice(world.servers), random.randint(1, 9))
        world.weather.troubles = 0

    async def _starts_anew(self, server: Metasrv, compactions: int) -> None:
        """Up to RESTARTS_MAX times it begins again behind a compaction that it hears of, and loads;
        with one more it ends."""
        world, sometimes = self.world, self.world.weather.sometimes
        server.kill()
        self.faults.append("server_starts_behind_compactions")
        before = server.restarts["load"]
        world.weather.compactions[server.name] = compactions
        server.start()

        def is_settled() -> bool:
            state = server.state
            return server.gave_up or (state is not None and state.follower.log.loaded.is_set())

        await self._over(f"{server.name} loads", is_settled, LOADED_MS_MAX)
        left = world.weather.compactions.pop(server.name, 0)
        begun = server.restarts["load"] - before
        met = compactions - left
        is_right = begun == RESTARTS_MAX < met if server.gave_up else begun <= RESTARTS_MAX
        if not is_right or begun > met:
            ended = "gave up" if server.gave_up else "loaded"
            world.wrong(f"load: {server.name} {ended} behind {met} compactions, {begun} restarts")
        sometimes[GAVE_UP if server.gave_up else AGAIN] += met > 0
        if server.gave_up:
            server.start()
