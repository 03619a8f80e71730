"""Legal ends of lives of tables whose regions have copies."""

from collections.abc import Sequence, Set

from tests.procedures.harness.ends import (
    TABLE,
    End,
    effects,
    is_true,
    no_rest,
    serving,
    serving_at,
)


def following(end: End, table_id: int) -> list[str]:
    """Every copy on a living node follows the epoch and the copies that the route names."""
    return followers(end, table_id, {"in-sync", "learner"})


def followers(end: End, table_id: int, of: Set[str]) -> list[str]:
    """The same of copies in the roles *of*."""
    wrong = []
    for region in end.regions(table_id):
        for copy in region.get("copies", ()):
            if copy["role"] not in of:
                continue
            node = end.cluster.plane.nodes[copy["node"]]
            here = node.following.get(region["region_id"])
            expected = (region["epoch"], copy["root"], region["copies_version"])
            if node.alive and (
                here is None or (here.epoch, here.root, here.copies_version) != expected
            ):
                wrong.append(f"copy of {region['region_id']} at {copy['node']}: {here}")
    return wrong


def roles(end: End, table_id: int) -> list[list[tuple[str, str]]]:
    """Node and role of each copy beside the leaders, by region."""
    return [
        sorted((copy["node"], copy["role"]) for copy in region.get("copies", ()))
        for region in end.regions(table_id)
    ]


def told(end: End, table_id: int) -> list[str]:
    """Every leader knows the copies that the route names."""
    wrong = []
    for region in end.regions(table_id):
        leader = end.cluster.plane.nodes[region["leader"]].serving.get(region["region_id"])
        known = None if leader is None else leader.copies_version
        if known != region.get("copies_version", 0):
            wrong.append(f"leader of {region['region_id']} knows copies of version {known}")
    return wrong


def promoted(end: End) -> list[str]:
    """A region with another copy in the set is led by it, and its former leader is a learner; the
    region without has moved."""
    return _promoted(end, (2, 2, 2))


def promoted_again(end: End) -> list[str]:
    """The same. The new leader that started again, alone in its set, leads one epoch higher than
    it opened first."""
    return _promoted(end, (3, 2, 2))


def _promoted(end: End, epochs: Sequence[int]) -> list[str]:
    leaders = [region["leader"] for region in end.regions(TABLE)]
    orders = [order for node, order in end.cluster.plane.told if node == "dn-3"]
    return [
        *serving_at(end, TABLE, epochs),
        *following(end, TABLE),
        *told(end, TABLE),
        *is_true(leaders[:2] == ["dn-2", "dn-3"], f"led by {leaders}"),
        *is_true(
            roles(end, TABLE)
            == [[("dn-1", "learner")], [("dn-1", "learner"), ("dn-2", "learner")], []],
            f"copies {roles(end, TABLE)}",
        ),
        *is_true(bool(orders), "nobody was told anything"),
        *no_rest(end),
    ]


def undropped_with_copies(end: End) -> list[str]:
    return [
        *serving(end, TABLE, epoch=2),
        *following(end, TABLE),
        *told(end, TABLE),
        *no_rest(end),
    ]


def dropped_with_copies(end: End) -> list[str]:
    nodes = end.cluster.plane.nodes.values()
    still_open = [
        (node.serving, node.following) for node in nodes if node.serving or node.following
    ]
    return [
        *is_true(not end.tables(), "the table is there"),
        *is_true(not any(still_open), f"regions are open: {still_open}"),
        *is_true(len(end.cluster.plane.storage.folders) == 6, "a folder is gone"),
        *no_rest(end),
    ]


def purged_with_copies(end: End) -> list[str]:
    folders = sorted(end.cluster.plane.storage.folders)
    return [*is_true(not folders, f"folders {folders}"), *no_rest(end)]


def joined(end: End) -> list[str]:
    """A learner is in the set, once, and leader and copies know it."""
    return [
        *effects(end, "route.changed"),
        *serving(end, TABLE, epoch=1),
        *following(end, TABLE),
        *told(end, TABLE),
        *is_true(
            roles(end, TABLE)[1] == [("dn-2", "in-sync"), ("dn-3", "in-sync")],
            f"copies {roles(end, TABLE)}",
        ),
        *no_rest(end),
    ]


def still_there(end: End) -> list[str]:
    """A drop was refused: the table is shown, and all its copies are open."""
    table = end.tables().get("public.t")
    is_shown = table is not None and table["state"] == "public"
    return [
        *is_true(is_shown, f"the table is {table}"),
        *serving(end, TABLE, epoch=1),
        *following(end, TABLE),
        *no_rest(end),
    ]


BEFORE = [[("dn-2", "in-sync")], [("dn-2", "learner"), ("dn-3", "in-sync")], []]
"""Copies of the table as it was made, by region."""


def copies_are(end: End, region: int, *expected: tuple[str, str]) -> list[str]:
    """The copies of one region are *expected*; those of the others, and all rows, are as before."""
    copies = [*BEFORE[:region], list(expected), *BEFORE[region + 1 :]]
    return [
        *serving(end, TABLE, epoch=1),
        *following(end, TABLE),
        *told(end, TABLE),
        *is_true(roles(end, TABLE) == copies, f"copies {roles(end, TABLE)}"),
        *no_rest(end),
    ]


def added(end: End) -> list[str]:
    """One learner more, in a root of its own version."""
    roots = [copy["root"] for copy in end.regions(TABLE)[0]["copies"]]
    name = f"/disks/dn-3/regions/{end.regions(TABLE)[0]['region_id']}-1-2"
    return [
        *effects(end, "route.changed"),
        *copies_are(end, 0, ("dn-2", "in-sync"), ("dn-3", "learner")),
        *is_true(name in roots and name in end.cluster.plane.storage.folders, f"roots {roots}"),
    ]


def made_anew(end: End) -> list[str]:
    """The learner is in another root, which has nothing of the one before."""
    (root,) = [
        copy["root"] for copy in end.regions(TABLE)[1]["copies"] if copy["role"] == "learner"
    ]
    folder = end.cluster.plane.storage.folders.get(root)
    return [
        *effects(end, "route.changed"),
        *copies_are(end, 1, ("dn-2", "learner"), ("dn-3", "in-sync")),
        *is_true(root.endswith("-1-2"), f"root {root}"),
        *is_true(folder is not None and not folder.files, f"it has {folder}"),
    ]


def removed(end: End) -> list[str]:
    return [*effects(end, "route.changed"), *copies_are(end, 1, ("dn-3", "in-sync"))]


def unchanged(end: End) -> list[str]:
    """Undone: no copy more or less, and no folder."""
    return copies_are(end, 0, *BEFORE[0])


def lost_learner_gone(end: End) -> list[str]:
    """Undone: the route names no learner there; or it was not begun."""
    before = roles(end, TABLE) == BEFORE
    return copies_are(end, 1, *(BEFORE[1] if before else [("dn-3", "in-sync")]))
