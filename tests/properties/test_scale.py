"""The scale only goes up: whatever was judged, later looks raise it or leave it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from carrier.late import leave_late
from carrier.proof import TornReceipt
from carrier.report import Unreadable
from carrier.transcript import NONE, SURFACED
from dispatch import kept
from dispatch.judge import PROOFS
from dispatch.verdict import DONE, SCALE
from dispatch.verify import await_surface, verify
from registry.processes import Processes
from tests.fakes.envelopes import DELIVERY, T
from tests.fakes.envelopes import a_receipt as plain_receipt
from tests.fakes.evidence import OTHER, StoppedClock, a_report, a_run, told
from tests.fakes.household import LINE, Household

NOTICES = ("delivered", "denied", "expired", "dropped")
WORLD = ("enqueue", "surface", "lose", "noise", "end", *NOTICES)
HAPPENINGS = st.sampled_from(["verify", "await"] * 4 + list(WORLD))
TARGET = os.getpid()


def a_receipt(**changes):
    """A receipt of the target that may end."""
    return plain_receipt(pid=TARGET, **changes)


RECEIPTS = st.sampled_from(
    [
        a_receipt(),
        a_receipt(eof=False, detail="EPIPE"),
        a_receipt(notices=told("held")),
        a_receipt(notices=told("dropped")),
        a_receipt(notices=told("denied")),
        a_receipt(wrote=False, eof=False, found="target-not-running", detail="gone"),
        a_receipt(session_id=OTHER),
        a_receipt(nonce="another"),
        TornReceipt("half"),
        None,
    ]
)
EVIDENCE = st.fixed_dictionaries(
    {
        "receipt": RECEIPTS,
        "report": st.sampled_from([a_report(), a_report(session_id=T), Unreadable("empty")]),
        "run": st.sampled_from([a_run(), a_run(exit=1), a_run(exit=-9), a_run(timed_out=True)]),
        "proof": st.sampled_from(PROOFS),
        "intent": st.just(True),
    }
)


def place(state):
    """A state's place on the scale; those beside it are below what may settle them."""
    return SCALE.index(state) if state in SCALE else -1


class Mortal(Processes):
    """A machine on which the target may have ended."""

    ended = False

    def start_token(self, pid):
        """As it is, but for the target."""
        return None if self.ended and pid == TARGET else super().start_token(pid)


def happen(what, home, transcript, before):
    """One thing that the world does, or one later look and what it says."""
    processes = Mortal()
    processes.ended = home.target_ended
    house = home.house(clock=StoppedClock(), processes=processes)
    if what == "enqueue":
        transcript.enqueue(LINE.decode())
    elif what == "surface":
        transcript.surface(DELIVERY)
    elif what == "noise":
        transcript.add({"type": "assistant", "message": DELIVERY})
    elif what == "end":
        home.target_ended = True
    elif what in NOTICES:
        os.makedirs(home.folder(), exist_ok=True)
        leave_late(home.folder(), told("held", what))
    elif what == "lose":
        Path(transcript.path).write_text("", encoding="utf-8")
    elif what == "verify":
        return verify(DELIVERY, house)
    else:
        with home.opened() as database:
            return await_surface(database, before, house, 0.1)
    return before


@settings(max_examples=60)
@given(EVIDENCE, st.lists(HAPPENINGS, min_size=1, max_size=8))
def test_no_later_look_lowers_a_verdict(evidence, happenings):
    """Proof and state only rise, a delivery stays one, and 0 is said only with its proof."""
    with tempfile.TemporaryDirectory() as folder:
        home = Household(Path(folder))
        home.target_ended = False
        try:
            transcript = home.transcript()
            before = home.judged(**evidence)
            over = home.line().state == kept.DELIVERED
            surfaced = evidence["proof"] == SURFACED
            for what in happenings:
                surfaced = surfaced or what == "surface"
                found = happen(what, home, transcript, before)
                assert PROOFS.index(before.proof) <= PROOFS.index(found.proof)
                assert place(before.verdict.state) <= place(found.verdict.state)
                if before.verdict.fate == DONE:
                    assert home.line().state in (kept.SENT, kept.DELIVERED)
                    assert found.verdict.name in (before.verdict.name, "surfaced", "not-surfaced")
                if found.verdict.fate == DONE and before.verdict.fate != DONE:
                    assert surfaced
                    assert (found.verdict.name, found.proof) == ("surfaced", SURFACED)
                if over:
                    assert home.line().state == kept.DELIVERED
                over = home.line().state == kept.DELIVERED
                # What answers one caller's patience is not the delivery's own verdict.
                if what != "await" or found.verdict.name != "not-surfaced":
                    before = found
        finally:
            home.registry.close()


def test_a_look_without_news_is_the_same_look(tmp_path):
    """Asked ten times, one answer, one entry."""
    home = Household(tmp_path)
    home.transcript()
    home.judged(receipt=None, proof=NONE)

    assert len({repr(verify(DELIVERY, home.house())) for _ in range(10)}) == 1
    home.registry.close()
