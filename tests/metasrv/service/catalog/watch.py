"""The path of the catalog's feed."""

WATCH = "/internal/v1/catalog/watch"
