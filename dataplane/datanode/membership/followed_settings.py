"""Settings of the cluster that a node follows: each answer to a heartbeat has their version, and
they are read when it has moved.

A node that cannot read them goes on with those it has, and asks again.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import structlog

from dataplane.datanode.membership.membership import Membership
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError
from metasrv_base.wire.api.cluster import SettingList

log = structlog.get_logger()


class SettingsSource(Protocol):
    async def settings(self) -> SettingList: ...


class FollowedSettings:
    """`run` follows them for ever."""

    def __init__(
        self,
        membership: Membership,
        source: SettingsSource,
        clock: Clock,
        appliers: Mapping[str, Callable[[Any], None]],
    ) -> None:
        """Each applier takes the value of the setting of its name. They do not raise."""
        self._membership, self._source, self._clock = membership, source, clock
        self._appliers = appliers
        self.version = 0
        """The version that was heard before the settings were read; 0: none was ever changed."""

    async def run(self) -> None:
        while True:
            await self.follow()
            await self._clock.sleep_ms(self._membership.heartbeat_ms)

    async def follow(self) -> None:
        """Reads the settings if their version has moved."""
        version = self._membership.settings_version
        if version == self.version:
            return
        try:
            stored = await self._source.settings()
        except MetaError as error:
            log.info("settings_not_read", code=error.code)
            return
        for setting in stored.settings:
            if setting.name in self._appliers:
                self._appliers[setting.name](setting.value)
        self.version = version
        log.info("settings_followed", version=version)
