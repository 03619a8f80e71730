"""Validation of placements, tablespaces and labels of nodes, without knowledge of the cluster:
pure; every fault at once, with its pointer."""

import re
from collections.abc import Iterator, Mapping, Sequence

from metasrv_base.engines import ENGINES, option_faults
from metasrv_base.wire.api.placing.placements import (
    LABELS_MAX,
    NodeFilterSpec,
    PlacementPatch,
    PlacementSpec,
    PlacingRename,
    StorageProfileSpec,
    TablespaceSpec,
)
from metasrv_base.wire.api.table_rules import copies_errors, name_errors, number_of
from metasrv_base.wire.problem.problems import FieldError

LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./-]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]{0,126}[A-Za-z0-9])?")
ZONE_CHARS_MAX = 256
BAD_LABEL = "a label is 1 to 63 letters, digits, _ . / and -, the first and last a letter or digit"
BAD_VALUE = "a value is 1 to 128 letters, digits, _ . : and -, the first and last a letter or digit"


def validate_placement(spec: PlacementSpec) -> tuple[FieldError, ...]:
    return (
        *name_errors(spec.name, "/name"),
        *copies_errors(spec.replicas, spec.min_in_sync),
        *_profile_errors(spec.storage_profiles),
        *_filter_errors(spec.node_filter),
        *_zone_errors(spec.preferred_zones, "/preferred_zones"),
        *unfit_zones(spec.preferred_zones, spec.node_filter.zones),
    )


def validate_placement_patch(patch: PlacementPatch) -> tuple[FieldError, ...]:
    return (
        *copies_errors(patch.replicas, number_of(patch.min_in_sync)),
        *_profile_errors(patch.storage_profiles or ()),
        *_filter_errors(patch.node_filter or NodeFilterSpec()),
        *_zone_errors(patch.preferred_zones or (), "/preferred_zones"),
    )


def validate_tablespace(spec: TablespaceSpec) -> tuple[FieldError, ...]:
    return name_errors(spec.name, "/name")


def validate_placing_rename(request: PlacingRename) -> tuple[FieldError, ...]:
    return name_errors(request.new_name, "/new_name")


def validate_labels(labels: Mapping[str, str]) -> tuple[FieldError, ...]:
    """The labels that a node is to have."""
    errors = []
    if len(labels) > LABELS_MAX:
        errors.append(_wrong("/labels", f"at most {LABELS_MAX} labels"))
    for name, value in list(labels.items())[:LABELS_MAX]:
        if not LABEL.fullmatch(name):
            errors.append(_wrong("/labels", BAD_LABEL))
        elif not LABEL_VALUE.fullmatch(value):
            errors.append(_wrong(f"/labels/{name}", BAD_VALUE))
    return tuple(errors)


def _profile_errors(profiles: Sequence[StorageProfileSpec]) -> Iterator[FieldError]:
    names: set[str] = set()
    for position, profile in enumerate(profiles):
        here = f"/storage_profiles/{position}"
        yield from name_errors(profile.name, f"{here}/name")
        if profile.name in names:
            yield _wrong(f"{here}/name", "a profile before it has that name")
        names.add(profile.name)
        kind = ENGINES.get(profile.engine)
        if kind is None:
            what = f"there is no such engine; there are {', '.join(ENGINES)}"
            yield FieldError(pointer=f"{here}/engine", code="unsupported", detail=what)
            continue
        for name, what in option_faults(kind, profile.options):
            code = "invalid-request" if name in kind.options else "unsupported"
            yield FieldError(pointer=f"{here}/options/{name}", code=code, detail=what)


def unfit_zones(preferred: Sequence[str], zones: Sequence[str]) -> Iterator[FieldError]:
    """Yields a fault for each preferred zone in which the node filter has no node. *zones*: those
    of the filter; empty: any."""
    for position, zone in enumerate(preferred):
        if zones and zone not in zones:
            what = f"{zone} is none of the zones of the node filter: {', '.join(zones)}"
            yield _wrong(f"/preferred_zones/{position}", what)


def _zone_errors(zones: Sequence[str], pointer: str) -> Iterator[FieldError]:
    for position, zone in enumerate(zones):
        here = f"{pointer}/{position}"
        if not 0 < len(zone) <= ZONE_CHARS_MAX:
            yield _wrong(here, "a zone is a text that is not empty")
        elif zone in zones[:position]:
            yield _wrong(here, "it is named twice")


def _filter_errors(node_filter: NodeFilterSpec) -> Iterator[FieldError]:
    yield from _zone_errors(node_filter.zones, "/node_filter/zones")
    labels = [condition.label for condition in node_filter.labels]
    for position, condition in enumerate(node_filter.labels):
        here = f"/node_filter/labels/{position}"
        if not LABEL.fullmatch(condition.label):
            yield _wrong(f"{here}/label", BAD_LABEL)
        elif condition.label in labels[:position]:
            yield _wrong(f"{here}/label", "a condition before it is on that label")
        for number, value in enumerate(condition.values):
            pointer = f"{here}/equals" if condition.one_of is None else f"{here}/in/{number}"
            if not LABEL_VALUE.fullmatch(value):
                yield _wrong(pointer, BAD_VALUE)
            elif value in condition.values[:number]:
                yield _wrong(pointer, "it is named twice")


def _wrong(pointer: str, detail: str) -> FieldError:
    return FieldError(pointer=pointer, detail=detail)
