"""Judges a cluster's history against the answers to its clients."""

from collections.abc import Sequence
from dataclasses import dataclass

from metasrv_base.ids import UUID_TEXT
from tests.process.harness.ddl_clients import Client, wrong_of
from tests.process.harness.rig import Rig


@dataclass(frozen=True, slots=True)
class Verdict:
    """`wrong` must be empty."""

    wrong: list[str]
    versions: int
    procedures: int
    resumed: int
    """Procedures that a later leader took up."""


async def judged(rig: Rig, clients: Sequence[Client]) -> Verdict:
    """Asked when the cluster has come to rest: every revision, every answer, `metasrv check`."""
    agreement = await rig.agreement()
    updates = {
        int(where[1]): update
        for where, update in agreement.family("__catalog").items()
        if where[0] == "update"
    }
    endings = {where[0]: ended for where, ended in agreement.family("__procedure_history").items()}
    assert all(UUID_TEXT.fullmatch(id) for id in endings)
    twice = [f"{id} ended {n} times" for id, n in agreement.endings.items() if n != 1]
    return Verdict(
        wrong=[*agreement.wrong, *wrong_of(clients, updates, endings), *twice, *await rig.check()],
        versions=len(updates),
        procedures=len(endings),
        resumed=sum(1 for ended in endings.values() if ended["last"]["resumed"]),
    )
