"""The plan of a restore, as it is shown before anything is written."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from metasrv.cli.tools.backup_files import source_facts

if TYPE_CHECKING:
    from metasrv.restore.backup_facts import BackupFacts
    from metasrv.restore.comparison import BackupComparison


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """`comparison`: with the inventories of `nodes`; None: none was given."""

    facts: "BackupFacts"
    comparison: "BackupComparison | None" = None
    nodes: tuple[str, ...] = ()

    @property
    def without_inventory(self) -> list[str]:
        """Nodes of the backup: a region that no other node holds may be on their disks."""
        return [node for node in self.facts.nodes if node not in self.nodes]


def plan_document(plan: RestorePlan) -> dict[str, object]:
    facts = plan.facts
    document: dict[str, object] = {
        **source_facts(facts),
        "catalog_version": facts.version.version,
        "tables": facts.counts["TableInfo"],
        "regions": facts.regions,
        "nodes": list(facts.nodes),
        "dropped_tables": facts.counts["RemovedTableInfo"],
        "procedures": [
            {
                "id": active.procedure,
                "kind": active.kind,
                "of": active.resource,
                "step": active.step,
            }
            for active in facts.procedures
        ],
    }
    if plan.comparison is not None:
        document["inventories"] = _compared(plan, plan.comparison)
    return document


def _compared(plan: RestorePlan, comparison: "BackupComparison") -> dict[str, object]:
    return {
        "of": list(plan.nodes),
        "missing": plan.without_inventory,
        "regions": dict(sorted(comparison.fates.items())),
        "findings": [finding.model_dump() for finding in comparison.findings],
        "unknown_tables": comparison.unknown_tables,
        "unknown_tables_total": comparison.unknown_total,
    }


def show_plan(plan: RestorePlan) -> None:
    from metasrv.cli.output import show_facts, show_table

    facts, document = plan.facts, plan_document(plan)
    document.pop("inventories", None)
    show_facts(
        document | {"nodes": ", ".join(facts.nodes), "procedures": facts.counts["Procedure"]}
    )
    if facts.procedures:
        typer.echo()
        rows = [
            (active.procedure, active.kind, active.resource, active.step)
            for active in facts.procedures
        ]
        show_table(("procedure", "kind", "of", "step"), rows)
    if plan.comparison is not None:
        typer.echo()
        _show_comparison(plan, plan.comparison)


def _show_comparison(plan: RestorePlan, comparison: "BackupComparison") -> None:
    from metasrv.cli.output import show_table

    fates = ", ".join(f"{count} {fate}" for fate, count in sorted(comparison.fates.items()))
    typer.echo(f"regions by the inventories of {', '.join(plan.nodes)}: {fates or 'none'}")
    if plan.without_inventory:
        typer.echo(f"no inventory of {', '.join(plan.without_inventory)}: give it with --inventory")
    if comparison.unknown_total:
        ids = ", ".join(str(table_id) for table_id in comparison.unknown_tables[:SHOWN_MAX])
        more = ", ..." if comparison.unknown_total > SHOWN_MAX else ""
        typer.echo(
            f"{comparison.unknown_total} tables that the backup does not have (ids {ids}{more}): "
            "their folders stay, and are not served"
        )
    if comparison.findings:
        rows = [
            (each.region_id or "-", each.table, each.fate, each.reason)
            for each in comparison.findings
        ]
        show_table(("region", "table", "is", "reason"), rows)


SHOWN_MAX = 10
"""Ids of unknown tables on a line; `--json` has a thousand."""
