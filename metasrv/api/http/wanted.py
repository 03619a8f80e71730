"""Query parameters of reads as what the service asks for."""

from fastapi import Request

from metasrv.api.http.query import PageQuery, ReadQuery
from metasrv.service.catalog.listing import Wanted
from metasrv.service.catalog.reading import Freshness


def freshness(query: ReadQuery) -> Freshness:
    return Freshness(query.min_version, query.as_of, query.fresh)


def wanted(request: Request, query: PageQuery) -> Wanted:
    return Wanted(request.url.path, query.page_size, query.page_token, freshness(query))
