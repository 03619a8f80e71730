"""Every breakage there is; tests/metasrv/check/test_rules_registered.py holds it against the
rules.
"""

from tests.metasrv.check.breaking import (
    break_copies,
    break_elements,
    break_files,
    break_keys,
    break_large,
    break_log,
    break_nodes,
    break_placing,
    break_snapshots,
)
from tests.metasrv.check.breaking.breaking import Breakage

BREAKAGES: tuple[Breakage, ...] = (
    *break_keys.BREAKAGES,
    *break_elements.BREAKAGES,
    *break_log.BREAKAGES,
    *break_files.BREAKAGES,
    *break_nodes.BREAKAGES,
    *break_placing.BREAKAGES,
    *break_snapshots.BREAKAGES,
    *break_large.BREAKAGES,
    *break_copies.BREAKAGES,
)
