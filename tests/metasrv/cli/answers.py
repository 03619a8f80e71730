"""Answers of a service that the command line shows."""

TABLES = "/v1/catalogs/main/schemas/public/tables"
