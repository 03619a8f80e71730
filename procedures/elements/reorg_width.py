"""How much of one reorg goes on at a time; an operator may change it while it runs."""

from dataclasses import dataclass


@dataclass(slots=True)
class ReorgWidth:
    """Of every reorg of a term. A round that has begun keeps its width."""

    jobs: int = 4
    """That Spark has at a time; the cores are shared by tasks."""
    regions: int = 16
    """Of a round: so many regions' lists of files are in a record at most."""
