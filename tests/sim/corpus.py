"""Seeds that found something once: they are lived in every run, for ever.

A seed's history changes with the code; what it went through, its faults, stays.
"""

FOUND: dict[int, str] = {
    1: "the rows of a file were counted over the columns of today, not those that it has",
    2: "a late copy of a delete that had found nothing deleted what came since",
    3: "a file flushed after a column came had it, and its checksum had not",
    4: "a node whose disk was full for a moment takes no order before it is restarted",
    5: "a read at a leader that was fenced by force: no promise, now no longer judged",
}
