"""The mark and the attempt of the jobs in tests of ingested files."""

MARK = "reorg"


ATTEMPT = "attempts/backfill"
