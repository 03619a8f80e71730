"""The width of a reorg: how many jobs and regions it works on at once. An operator may change
it."""

from dataclasses import dataclass


@dataclass(slots=True)
class ReorgWidth:
    """The width of every reorg of a term. A round that has begun keeps its width."""

    jobs: int = 4
    """Jobs submitted to Spark at a time; their tasks share the cores."""
    regions: int = 16
    """Regions of a round; it bounds the lists of files in a record."""
