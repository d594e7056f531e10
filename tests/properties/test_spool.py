"""The spool under every order of accept, settle and later looks."""

from __future__ import annotations

import hashlib
import tempfile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dispatch import spool
from dispatch.database import Database
from dispatch.errors import KeyConflict
from dispatch.verdict import DONE, FAILED, NONE, OPEN, QUEUE
from registry.ids import new_uuid

KEYS = tuple(f"a0000000-0000-4000-8000-00000000000{n}" for n in range(3))
BODIES = (b"tests are green", b"tests are red")
FATES = st.sampled_from([DONE, OPEN, QUEUE, NONE, FAILED])
NOW = 1_796_048_000.0


class Spool(RuleBasedStateMachine):
    """Several processes with a few keys; the model knows only what was promised."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.database = Database(f"{self.folder.name}/zdo.db")
        self.bodies = {}  # key → the bytes that it stands for
        self.claims = {}  # key → who may deliver it now
        self.settled = {}  # key → its fate, once nobody tries it
        self.deliveries = dict.fromkeys(KEYS, 0)
        self.attempts = dict.fromkeys(KEYS, 0)

    def teardown(self):
        """Leave nothing behind."""
        self.database.close()
        self.folder.cleanup()

    @rule(key=st.sampled_from(KEYS), body=st.sampled_from(BODIES))
    def accept(self, key, body):
        """Somebody kisses with *key*."""
        owner = new_uuid()
        draft = spool.Draft(key, hashlib.sha256(body).digest(), body, "mini", "fable", owner)
        try:
            with self.database.writing() as link:
                claim = spool.accept(link, draft, NOW)
        except KeyConflict:
            assert self.bodies.get(key) not in (None, body)
            return
        assert self.bodies.setdefault(key, body) == body
        if isinstance(claim, int):
            assert key not in self.claims
            assert self.settled.get(key) in (None, QUEUE, NONE)
            self.attempts[key] += 1
            assert self.attempts[key] == claim
            self.settled.pop(key, None)
            self.claims[key] = owner
        else:
            assert claim.body == body
            assert key in self.claims or self.settled[key] in (DONE, OPEN, FAILED)

    @rule(key=st.sampled_from(KEYS), fate=FATES)
    def settle(self, key, fate):
        """Whoever holds *key* has judged it."""
        owner = self.claims.pop(key, None)
        with self.database.writing() as link:
            ours = spool.settle(link, key, owner or new_uuid(), fate, NOW)
        assert ours == (owner is not None)
        if ours:
            self.settled[key] = fate
            self.deliveries[key] += fate == DONE

    @rule(key=st.sampled_from(KEYS), fate=FATES)
    def settle_of_a_stranger(self, key, fate):
        """Somebody who never had the claim, or lost it, changes nothing."""
        before = self.found(key)
        with self.database.writing() as link:
            assert not spool.settle(link, key, new_uuid(), fate, NOW)
        assert before == self.found(key)

    @rule(key=st.sampled_from(KEYS), fate=FATES)
    def look_again(self, key, fate):
        """A later process has read the transcript, or judged an orphan."""
        with self.database.writing() as link:
            spool.settle_doubt(link, key, fate, NOW)
        open_now = key in self.claims or self.settled.get(key) == OPEN
        lifted = fate == DONE and self.settled.get(key) in (QUEUE, NONE, FAILED)
        if open_now or lifted:
            self.claims.pop(key, None)
            self.settled[key] = fate
            self.deliveries[key] += fate == DONE

    @invariant()
    def a_line_says_what_its_key_may_do(self):
        """Claimed, settled, or free to be tried: exactly one of the three, as was promised."""
        for key in KEYS:
            if (kept := self.found(key)) is None:
                continue
            claimed, free = key in self.claims, self.settled.get(key) in (QUEUE, NONE)
            assert (kept.state == spool.CLAIMED, kept.may_be_tried) == (claimed, free)
            assert kept.is_settled is not (claimed or free)

    @invariant()
    def no_key_is_delivered_twice_and_a_delivery_stays(self):
        """Once delivered, for ever delivered, and only once."""
        for key in KEYS:
            kept = self.found(key)
            assert (kept is None) == (key not in self.bodies)
            assert self.deliveries[key] <= 1
            if self.settled.get(key) == DONE:
                assert (kept.state, kept.status) == (spool.DELIVERED, "2.000.000")
            if key in self.claims:
                assert kept.state == spool.CLAIMED
            if self.settled.get(key) == OPEN:
                assert kept.state == spool.UNCERTAIN

    def found(self, key):
        """The line as it stands."""
        with self.database.reading() as link:
            return spool.find(link, key)


TestSpool = Spool.TestCase
TestSpool.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
