"""Query parameters of reads as what the service asks for."""

from fastapi import Request

from metasrv.api.http.query import PageQuery, ReadQuery
from metasrv.service.catalog.listing import ListRequest
from metasrv.service.catalog.reading import Freshness


def freshness(query: ReadQuery) -> Freshness:
    return Freshness(query.min_version, query.as_of, query.fresh)


def page_query(request: Request, query: PageQuery) -> ListRequest:
    return ListRequest(request.url.path, query.page_size, query.page_token, freshness(query))
