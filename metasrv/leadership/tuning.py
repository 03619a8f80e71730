"""Applies the settings to the parts of a term, at its start and after every change."""

from dataclasses import dataclass, replace

from metasrv.nodes.node_liveness import NodeLiveness
from metasrv.settings.tunables import Tunables
from procedures.elements.reorg_width import ReorgWidth
from procedures.machine import AdmissionLane
from procedures.pause_gate import PauseGate
from procedures.scheduling.admission import Limits
from procedures.scheduling.manager import Manager


@dataclass(frozen=True, slots=True)
class Tuned:
    """The parts of one term that settings reach. The first two hold where a setting is null."""

    limits: Limits
    phi_threshold: float
    book: NodeLiveness
    manager: Manager
    gate: PauseGate
    reorg_width: ReorgWidth

    def follow(self, values: Tunables) -> None:
        self.book.suspect_from(values.phi_threshold or self.phi_threshold)
        self.manager.adjust(limits_of(self.limits, values))
        self.reorg_width.jobs = values.reorg_jobs_max
        self.reorg_width.regions = values.reorg_regions_max
        pause = values.procedures
        if pause.paused:
            self.gate.close(pause.reason, pause.since_ms, pause.stood_ms)
        else:
            self.gate.open(pause.stood_ms)


def limits_of(started: Limits, values: Tunables) -> Limits:
    running = {
        **started.running_max,
        **({AdmissionLane.DDL: values.running_max} if values.running_max else {}),
        **({AdmissionLane.REPAIR: values.repair_max} if values.repair_max else {}),
    }
    queue_max = values.queue_max or started.queue_max
    return replace(started, running_max=running, queue_max=queue_max)
