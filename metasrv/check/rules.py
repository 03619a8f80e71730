"""Every rule, from the narrow to the wide; the first that finds fault with a thing names it."""

from metasrv.check import (
    rules_copies,
    rules_files,
    rules_keys,
    rules_log,
    rules_nodes,
    rules_procedures,
    rules_removed,
    rules_tables,
)
from metasrv.check.rule import CheckRule

RULES: tuple[CheckRule, ...] = (
    *rules_keys.RULES,
    *rules_tables.RULES,
    *rules_copies.RULES,
    *rules_removed.RULES,
    *rules_procedures.RULES,
    *rules_log.RULES,
    *rules_files.RULES,
    *rules_nodes.RULES,
)
