"""All views of the information schema, by name."""

from collections.abc import Mapping

from metasrv.service.nearby import hint
from metasrv.service.views.cluster_views import CLUSTER_VIEWS
from metasrv.service.views.of_namespaces import NAMESPACE_VIEWS
from metasrv.service.views.table_views import TABLE_VIEWS
from metasrv.service.views.view import View, near_column
from metasrv_base.errors import NotFound, Refused

VIEWS: Mapping[str, View] = {
    view.name: view for view in (*TABLE_VIEWS, *NAMESPACE_VIEWS, *CLUSTER_VIEWS)
}


def view_named(name: str) -> View:
    """Returns the view of a name in any case. Raises NotFound, with the name that comes close."""
    view = VIEWS.get(name.lower())
    if view is None:
        raise NotFound("not-found", what="view", name=name, **hint(name.lower(), VIEWS.keys()))
    return view


def must_have_columns(view: View, names: tuple[str, ...], pointer: str) -> None:
    """Raises Refused for the first of *names* that is no column, with the one that comes close."""
    for name in names:
        if name not in view.places:
            raise Refused(
                "invalid-request",
                pointer=pointer,
                found=name[:128],
                expected=f"a column of {view.name}",
                **near_column(view, name),
            )
