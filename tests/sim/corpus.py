"""Seeds that found something once: they are lived in every run, for ever.

A seed's history changes with the code; what it went through, its faults, stays.
"""

from tests.sim.length import SHORT, Life

FOUND: dict[Life, str] = {
    Life(1): "the rows of a file were counted over the columns of today, not those that it has",
    Life(2): "a late copy of a delete that had found nothing deleted what came since",
    Life(3): "a file flushed after a column came had it, and its checksum had not",
    Life(4): "a node whose disk was full for a moment takes no order before it is restarted",
    Life(5): "a read at a leader that was fenced by force: no promise, now no longer judged",
    Life(
        83, SHORT
    ): "a leader that stood still waited for a version that only the next one had heard of",
    Life(
        206, SHORT
    ): "a throttle that lost to a step read the record of before, and ended the leader",
}
