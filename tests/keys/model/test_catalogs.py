"""Formats of tenants: a catalog without settings and limits is stored as it ever was."""

import pytest

from keys.model.catalogs import CatalogInfo, CatalogLimits, CatalogSettings, ResourceShare
from keys.model.log import CatalogAltered, CatalogCreated, CatalogUpdate, format_of
from keys.value import decode, encode

PLAIN = CatalogInfo(catalog_id=7, name="acme", created_at_ms=5)
GOLDEN_1 = (
    b'{"format":1,"catalog_id":7,"name":"acme","options":{},"created_at_ms":5,"dropping":null}'
)
GOLDEN_2 = (
    b'{"format":2,"catalog_id":7,"name":"acme","options":{},"created_at_ms":5,"dropping":null,'
    b'"settings":{"autocommit":true,"tx_isolation":"read-committed","drop_retention_ms":60000},'
    b'"limits":{"tables":3,"regions":null,"procedures":null,'
    b'"cpu_cores":{"reserved":2,"at_most":4},"memory_bytes":{"reserved":0,"at_most":null}}}'
)
GOLDEN_UPDATE_3 = (
    b'{"format":3,"version":9,"at_ms":5,"procedure":null,"origin":null,'
    b'"entries":[{"op":"catalog.altered","info":' + GOLDEN_2 + b"}]}"
)
SETTINGS = CatalogSettings(drop_retention_ms=60_000)
LIMITS = CatalogLimits(tables=3, cpu_cores=ResourceShare(reserved=2, at_most=4))
TENANT = PLAIN.as_tenant(SETTINGS, LIMITS)


@pytest.mark.parametrize(("info", "golden"), [(PLAIN, GOLDEN_1), (TENANT, GOLDEN_2)])
def test_given_a_catalog_when_stored_then_in_the_lowest_format_that_holds_it(
    info: CatalogInfo, golden: bytes
) -> None:
    assert encode(info) == golden
    assert decode(CatalogInfo, golden, key="__catalog_name/acme") == info


def test_given_a_tenant_when_all_is_as_by_default_again_then_it_is_stored_as_before() -> None:
    assert TENANT.as_tenant(CatalogSettings(), CatalogLimits()) == PLAIN
    assert (PLAIN.own_settings, PLAIN.own_limits) == (CatalogSettings(), CatalogLimits())


def test_given_an_update_then_its_format_is_the_lowest_that_has_its_entries() -> None:
    altered = CatalogAltered(info=TENANT)
    update = CatalogUpdate(
        format=format_of((altered,)), version=9, at_ms=5, procedure=None, entries=(altered,)
    )

    assert encode(update) == GOLDEN_UPDATE_3
    assert decode(CatalogUpdate, GOLDEN_UPDATE_3, key="__catalog/update/9") == update
    assert format_of((CatalogCreated(info=PLAIN),)) == 2
