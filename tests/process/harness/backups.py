"""Backups taken again and again beside whatever else happens: each is sound, or refused."""

from dataclasses import dataclass, field

from metasrv.check.check_backup import check_backup
from metasrv_base.errors import MetaError, Unavailable
from tests.process.harness.rig import Rig

PAUSE_MS = 200


@dataclass
class BackupTaker:
    """The loop."""

    rig: Rig
    sound: int = 0
    faults: list[str] = field(default_factory=list)
    is_over: bool = False

    async def run(self) -> None:
        async with self.rig.client() as db:
            while not self.is_over:
                try:
                    parts = [part async for part in db.backups.download()]
                    checked = check_backup(parts)
                except Unavailable:  # that server was hit
                    pass
                except MetaError as error:  # a file without its end says so
                    if "cut" not in str(error):
                        self.faults.append(f"backup: {error}")
                else:
                    self.sound += not checked.violations
                    self.faults += (f"backup: {violation.line}" for violation in checked.violations)
                await self.rig.clock.sleep_ms(PAUSE_MS)
