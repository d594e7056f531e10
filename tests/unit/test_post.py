"""What one attempt gets, and what the result and the journal keep of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from carrier.binding import Binding
from carrier.envelope import from_bytes, to_bytes
from carrier.errors import AttemptExists
from carrier.proof import TornReceipt
from carrier.report import Unreadable
from dispatch import post
from dispatch.errors import SpoolUnwritable
from dispatch.verdict import TABLE
from registry.home import open_state
from tests.fakes.envelopes import DELIVERY, P, T, a_receipt
from tests.fakes.evidence import (
    BINDING,
    NONCE,
    OTHER,
    a_config,
    a_report,
    a_run,
    an_evidence,
    told,
)
from tests.fakes.household import LINE, Household, asked, conclude, key_of

SILENT = Unreadable("empty")


@pytest.fixture
def home(tmp_path):
    """A household with its state folder."""
    household = Household(tmp_path)
    open_state(household.house().places)
    yield household
    household.registry.close()


def letter(home, number=1, **changes):
    """A letter of the first attempt of line *number*."""
    key = key_of(number)
    result = asked(delivery_id=key, attempt=1, **changes)
    return post.letter(result, BINDING, a_config(), home.house(), LINE)


def pack(home, *letters, house=None, **changes):
    """The run for *letters*, for the first one if there are none."""
    letters = letters or (letter(home),)
    return post.pack(letters, a_config(**changes), house or home.house(), 7)


def test_a_run_names_the_postbox_the_target_and_its_own_folder(home):
    """INTERFACE 4: the carrier resumes P, knows the target by its id, and T is nowhere in argv."""
    home.claude("exit 0")
    order, _ = pack(home)
    folder = f"{home.state}/attempts/{DELIVERY}.1"

    assert (f"{home.root}/bin/claude", P) == (order.argv[0], order.argv[3])
    assert order.argv[-1] == f"zdo knock {DELIVERY}"
    assert not any(T in word for word in order.argv)
    assert (P, "fable", folder, "anonymous") == (
        order.env["ZDO_CARRIER_SESSION"],
        order.env["ZDO_CARRIER_DOOR_TARGET"],
        order.env["ZDO_CARRIER_ATTEMPT"],
        order.env["ZDO_SENDER_SESSION_ID"],
    )
    assert (folder, (folder,), 7, f"{home.state}/postbox") == (
        order.lead, order.folders, order.lease_fd, order.cwd
    )  # fmt: skip


def test_a_run_of_many_lines_names_the_first_alone(home):
    """No other line has a part in argv or environment; each has its own folder and nonce."""
    letters = tuple(letter(home, number) for number in range(1, 4))

    order, timed = pack(home, *letters)
    alone, _ = pack(home)

    assert (alone.argv, alone.env) == (order.argv, order.env)
    assert tuple(f"{home.state}/attempts/{key_of(n)}.1" for n in (1, 2, 3)) == order.folders
    assert order.folders == tuple(each.folder for each in timed)
    assert 3 == len({each.envelope.nonce for each in timed})


def test_every_line_more_gives_a_wrapper_more_time(home):
    """All of a run have the same, and it is the run's."""
    letters = tuple(letter(home, number) for number in range(1, 11))
    alone, (single,) = pack(home, settle_s=0.5)
    order, timed = pack(home, *letters, settle_s=0.5)

    assert (alone.wrapper_s, single.envelope.wrapper_s) == (post.WRAPPER_S + 0.5,) * 2
    assert {post.WRAPPER_S + 0.5 + 9 * post.LINE_S} == {
        order.wrapper_s, *(each.envelope.wrapper_s for each in timed)
    }  # fmt: skip


def test_a_run_has_its_deadline_from_the_configuration(home):
    """Whatever the lines are."""
    assert 12.5 == pack(home, timeout_s=12.5)[0].deadline_s


def test_a_program_that_is_not_found_stays_as_it_was_named(home):
    """The spawn will say so, with the name that the configuration has."""
    assert "no-such" == pack(home, claude_bin="no-such")[0].argv[0]


def test_a_caller_without_a_path_gets_the_platforms(home):
    """Not the current folder."""
    order, _ = pack(home, house=home.house(env={}), claude_bin="sh")

    assert order.argv[0] in [f"{folder}/sh" for folder in os.defpath.split(":") if folder]


def test_a_plan_shows_names_and_no_values(home):
    """Values of the environment may be private."""
    order, _ = pack(home)

    plan = post.plan_of(asked(attempt=1), BINDING, a_config(), home.house())

    assert plan.argv == tuple(order.argv)
    assert list(plan.env) == sorted(order.env)


def test_an_envelope_is_one_that_the_wrapper_takes():
    """Everything in it is canonical, and it survives the folder."""
    envelope = post.envelope_of(asked(attempt=2), a_config(settle_s=0.5), LINE, NONCE)

    assert from_bytes(to_bytes(envelope)) == envelope
    assert (2, LINE.decode(), T, P, NONCE, DELIVERY) == (
        envelope.attempt,
        envelope.line,
        envelope.session_id,
        envelope.postbox,
        envelope.nonce,
        envelope.msg_id,
    )
    assert envelope.wrapper_s == post.WRAPPER_S + 0.5


def lay_out(order, timed):
    """Everything of the run on disk."""
    post.lay_out(order, timed)
    return [sorted(os.listdir(folder)) for folder in order.folders]


def test_what_is_laid_out_is_what_the_carrier_needs(home):
    """Settings and permit, in a folder of its own; the companions are named in the lead's."""
    assert [["dispatcher", "permit", "settings.json"]] == lay_out(*pack(home))
    first, second = letter(home, 3), letter(home, 4)

    lead = ["dispatcher", "permit", "round", "settings.json"]
    assert [lead, ["permit"]] == lay_out(*pack(home, first, second))


def test_a_folder_that_cannot_be_made_is_spool_unwritable(home):
    """73: nothing was started."""
    os.rmdir(home.house().places.attempts)

    with pytest.raises(SpoolUnwritable, match=f"{DELIVERY}.1: No such file"):
        lay_out(*pack(home))


def test_a_line_that_no_folder_can_hold_is_spool_unwritable(home):
    """An error without a number says what it says."""

    class Odd(OSError):
        """As some file systems have them."""

    def lying(*_):
        raise Odd("the disk is odd")

    before, os.mkdir = os.mkdir, lying
    try:
        with pytest.raises(SpoolUnwritable, match="the disk is odd"):
            lay_out(*pack(home))
    finally:
        os.mkdir = before


@pytest.mark.parametrize("damage", ["file", "folder"])
def test_a_folder_that_is_there_already_is_no_fault_of_the_disk(home, damage):
    """Somebody tried this attempt before: that is a doubt, and it stays as it is."""
    order, timed = pack(home)
    if damage == "file":
        Path(order.lead).touch()
    else:
        os.mkdir(order.lead)

    with pytest.raises(AttemptExists, match=DELIVERY):
        post.lay_out(order, timed)
    assert damage == "file" or os.listdir(order.lead) == []


def test_a_result_says_what_carrier_and_receipt_said():
    """Each fact from its own witness."""
    result = conclude(an_evidence())

    assert (P, P, 0, 0.0, 0, 561) == tuple(
        getattr(result.carrier, name)
        for name in ("session_id", "result_session_id", "num_turns", "cost_usd", "exit", "wall_ms")
    )
    assert (T, "inbox") == (result.receipt.session_id, result.receipt.door)
    assert ("delivered-start", "written", None) == (
        result.verdict.name,
        result.proof,
        result.reason,
    )


def test_what_was_not_said_is_null():
    """Never guessed: no report, nothing written."""
    result = conclude(
        an_evidence(
            report=SILENT,
            receipt=a_receipt(wrote=False, eof=False, found="door-mismatch", detail="x"),
        )
    )

    assert (P, None, None, None) == (
        result.carrier.session_id,
        result.carrier.result_session_id,
        result.carrier.num_turns,
        result.carrier.cost_usd,
    )
    assert result.receipt.session_id is None


@pytest.mark.parametrize("receipt", [None, TornReceipt("half")])
def test_without_a_receipt_its_part_is_null(receipt):
    """Torn is as good as none."""
    assert conclude(an_evidence(receipt=receipt)).receipt.at is None


@pytest.mark.parametrize(
    "evidence",
    [
        an_evidence(receipt=a_receipt(notices=told("held", reason="x"))),
        an_evidence(receipt=None),
        an_evidence(receipt=TornReceipt("half"), report=SILENT),
        an_evidence(report=a_report(session_id=OTHER)),
    ],
)
def test_the_journal_keeps_the_evidence_as_json(evidence):
    """Whatever was found, it can be written and read."""
    kept = json.loads(json.dumps(post.evidence_facts(evidence)))

    assert evidence.intent == kept["intent"]
    assert (evidence.receipt is None) == (kept["receipt"] is None)
    assert [n.status for n in getattr(evidence.receipt, "notices", ())] == [
        notice["status"] for notice in (kept["receipt"] or {}).get("notices", [])
    ]


def test_the_journal_keeps_the_end_of_a_flood():
    """Two thousand characters of each stream, also when they are not UTF-8."""
    kept = post.evidence_facts(
        an_evidence(run=a_run(stdout=b"o" * 10_000 + b"end", stderr=b"\xff" * 10_000))
    )

    assert len(kept["run"]["stdout"]) == 2000
    assert kept["run"]["stdout"].endswith("end")
    assert len(kept["run"]["stderr"]) == 2000


@pytest.mark.parametrize(("name", "stays"), [("unknown", True), ("carrier-exit", False)])
def test_only_an_open_outcome_keeps_its_folder(home, name, stays):
    """Intent and receipt are its evidence; else the line's second copy goes."""
    order, timed = pack(home)
    post.lay_out(order, timed)

    post.forget_if_settled(asked(attempt=1, verdict=TABLE[name]), home.house())

    assert stays == os.path.exists(order.lead)


def test_a_folder_that_is_gone_is_forgotten_already(home):
    """Nothing to do is not an error."""
    post.forget_if_settled(asked(verdict=TABLE["carrier-exit"]), home.house())

    assert os.listdir(home.house().places.attempts) == []


def test_a_verdict_compares_with_the_binding_and_the_nonce():
    """The judge gets the two sessions side by side."""
    other = post.conclude(asked(), an_evidence(), Binding(OTHER, P), NONCE)
    foreign = post.conclude(asked(), an_evidence(), BINDING, "another")

    assert ("door-mismatch", "receipt-foreign") == (other.verdict.name, foreign.verdict.name)
