"""Reading along: whatever is asked for in between, every entry comes once, and in order."""

from __future__ import annotations

import contextlib
import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from dispatch import reader, senders, tables
from dispatch.cursor import first_place
from dispatch.reader import ASC, DESC, Narrow
from tests.fakes.household import key_of
from tests.fakes.spools import NOW, an_event, put

CLASSES = (("queued", "queued"), ("claimed", None), ("judged", "surfaced"), ("judged", "unknown"))
NARROWS = (
    Narrow(),
    Narrow(level="info"),
    Narrow(target="fable"),
    Narrow(name="unknown"),
    Narrow(correlation=key_of(1)),
)
ACTS = st.one_of(
    st.tuples(st.just("happen"), st.integers(0, 20)),
    st.tuples(
        st.just("read"),
        st.integers(1, 9),
        st.sampled_from([ASC, DESC]),
        st.booleans(),
        st.sampled_from(NARROWS),
    ),
)


class Book:
    """A journal in memory, and one reader of it."""

    def __init__(self, link):
        self.link, self.count = link, 0
        tables.create(link)
        senders.register(link, "cron", None, NOW)

    def happen(self, times):
        """That many entries more."""
        for _ in range(times):
            kind, name = CLASSES[self.count % len(CLASSES)]
            self.count += 1
            put(self.link, "event", an_event(key_of(self.count), kind, name))

    def read(self, limit, order, peek, narrow):
        """The ids that `zdo receipts --resume` has on its page, and whether the cursor moved."""
        who = senders.find(self.link, "cron")
        after = first_place(who, reader.tip(self.link), from_start=True)
        page = reader.page(self.link, after, limit, order)
        moves = not peek and narrow.may_move
        if moves:
            assert senders.move(self.link, who, page.next_cursor)
        return sorted(event.id for event in page.events), moves


@given(st.lists(ACTS, max_size=30), st.integers(1, 9))
def test_no_entry_is_lost_or_read_twice(acts, limit):
    """Peeks, narrow looks and new entries between the pages change nothing."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as link:
        book, seen = Book(link), []
        for what, *how in acts:
            if what == "happen":
                book.happen(*how)
            else:
                ids, moved = book.read(*how)
                seen += ids if moved else []
        rounds, left = 0, book.count - len(seen)
        more = True
        while more:
            ids, _ = book.read(limit, ASC, False, Narrow())
            seen += ids
            rounds, more = rounds + 1, len(ids) == limit

        assert list(range(1, book.count + 1)) == seen
        assert left // limit + 1 == rounds
