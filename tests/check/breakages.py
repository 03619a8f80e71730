"""Every breakage there is; tests/check/test_registry.py holds it against the rules."""

from tests.check import break_elements, break_files, break_keys, break_log, break_nodes
from tests.check.breaking import Breakage

BREAKAGES: tuple[Breakage, ...] = (
    *break_keys.BREAKAGES,
    *break_elements.BREAKAGES,
    *break_log.BREAKAGES,
    *break_files.BREAKAGES,
    *break_nodes.BREAKAGES,
)
