"""The store is away for a minute, while a change is on its way beside users of frontends.

How it is away, what is on its way and how far it had come is the scene's.
"""

from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any

from keys.model.tables import TableInfo, TableInfoKey
from keys.value import decode
from metasrv_base.elements.states import ElementState
from tests.sim.clients.changes import Alterer
from tests.sim.clients.elements import Element
from tests.sim.clients.shaped import SPARSE
from tests.sim.clients.users import User
from tests.sim.cluster.message_fates import STORE
from tests.sim.cluster.world import World
from tests.sim.length import SHORT, Life
from tests.sim.scenario import Plot

CALM_MS = 8_000
"""In which rows come, before anything is changed."""
AWAY_MS = 60_000
STOPPED_S = 20.0
"""After which nobody has a lease of a region any more that the last leader gave."""
CHANGED_MS_MAX = 30_000
"""In which the change has ended once the store is back: an election, and the longest lease."""
LENGTH = replace(SHORT, name="away", writers=0)
DONE_MEANWHILE = "a statement done while the store was away"
REFUSED_MEANWHILE = "a statement refused while the store was away"
DONE_AFTERWARDS = "a statement done after the store was back"
CHANGED = "a change that ended after the store was back"


@dataclass(frozen=True)
class Scene:
    what: str
    """An index, or a column."""
    state: ElementState
    """In which it was published a moment ago."""
    is_silent: bool
    """Whether calls and answers are lost; else each is refused, and watches end."""

    def __str__(self) -> str:
        return f"{self.what}-{self.state}-{'silent' if self.is_silent else 'refusing'}"


class Away(Plot):
    look_ms = 100

    def __init__(self, world: World, life: Life, scene: Scene) -> None:
        super().__init__(world, life)
        assert world.oracle.leases_hold, "every read is judged"
        self.scene = scene
        self.is_changed = False
        self.is_settled = False

    @property
    def alterer(self) -> Alterer:
        (alterer,) = self.alterers
        return alterer

    def _actors(self) -> "list[tuple[str, Coroutine[Any, Any, None]]]":
        table = self.alterer.table
        users = [User(self._line(f"user-{n}"), table, n) for n in range(self.length.users)]
        self.alterer.steered = 0.0
        return [
            *((user.session.name, self._use(user)) for user in users),
            ("alterer", self._change()),
        ]

    async def _use(self, user: User) -> None:
        while not self.is_settled:
            await user.run(1)

    async def _change(self) -> None:
        await self.world.sleep_ms(CALM_MS)
        table, made = self.alterer.table, list[Element]()
        if self.scene.what == "index":
            await self.alterer.index(SPARSE)
            made.extend(table.indexes.values())
        else:
            await self.alterer.column(7)
            made.extend(table.columns.values())
        now = self.world.loop.time()
        if not made[-1].is_there(now, now):
            self.world.wrong("the change was not made")
        self.is_changed = True

    async def _trouble(self) -> None:
        world, weather = self.world, self.world.weather
        await self._comes_to_it()
        gone = world.loop.time()
        links = {(STORE, "*"), ("*", STORE)}
        weather.cut |= links if self.scene.is_silent else set()
        weather.is_down = not self.scene.is_silent
        weather.downs += weather.is_down
        await world.sleep_ms(AWAY_MS)
        if self.is_changed:
            world.wrong("the change ended without the store")
        back = world.loop.time()
        weather.cut -= links
        weather.is_down = False
        await self._over("the change", lambda: self.is_changed, CHANGED_MS_MAX)
        weather.sometimes[CHANGED] += self.is_changed
        await world.sleep_ms(CALM_MS)
        self.is_settled = True
        self._count(gone, back)

    async def _comes_to_it(self) -> None:
        """Returns in the moment in which what is changed is published in its state."""
        kv, key = self.world.kv, bytes(TableInfoKey(self.alterer.table.table_id))
        async for watched in kv.watch(key, key + b"\0", start_revision=kv.revision + 1):
            for event in watched.events:
                assert event.value is not None, "nobody drops it"
                info = decode(TableInfo, event.value, key=key.decode())
                states = {one.state for one in info.columns} | {one.state for one in info.indexes}
                if self.scene.state in states:
                    return

    def _count(self, gone: float, back: float) -> None:
        sometimes = self.world.weather.sometimes
        for written in self.alterer.table.rows.keys.values():
            for one in written:
                if one.began >= back:
                    sometimes[DONE_AFTERWARDS] += one.is_sure
                elif one.began >= gone:
                    sometimes[DONE_MEANWHILE] += one.ended < back
                    sometimes[REFUSED_MEANWHILE] += one.refused
                if gone + STOPPED_S < one.ended < back:
                    self.world.wrong(f"done {one.ended - gone:.1f} s after the store had gone")
