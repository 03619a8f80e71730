"""A table of the parts of a run with their durations, printed as its last lines."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Took:
    """One part of a run that has ended."""

    name: str
    ms: int
    cpu_ms: int
    """Processor time of all its processes, user and system: does not grow with other load."""
    ok: bool
    said: str = ""


def table(parts: Sequence[Took], total_ms: int) -> str:
    """*total_ms* of the whole run: less than the sum where parts ran side by side."""
    width = max(len(name) for name in ["total", *(part.name for part in parts)])
    lines = [
        _line(
            part.name.ljust(width), part.ms, part.cpu_ms, "ok" if part.ok else "FAILED", part.said
        )
        for part in parts
    ]
    verdict = "ok" if all(part.ok for part in parts) else "FAILED"
    cpu_ms = sum(part.cpu_ms for part in parts)
    lines.append(_line("total".ljust(width), total_ms, cpu_ms, verdict, ""))
    return "\n".join(lines)


def _line(name: str, ms: int, cpu_ms: int, verdict: str, said: str) -> str:
    return f"{name}  {ms / 1000:7.1f} s  {cpu_ms / 1000:7.1f} cpu s  {verdict:6}  {said}".rstrip()
