"""What one attempt gets, and what the result and the journal keep of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from carrier.attempt import prepare
from carrier.binding import Binding
from carrier.envelope import from_bytes, to_bytes
from carrier.errors import AttemptExists
from carrier.proof import TornReceipt
from carrier.report import Unreadable
from dispatch import post
from dispatch.aim import Aim
from dispatch.errors import SpoolUnwritable
from dispatch.verdict import TABLE
from registry.home import open_state
from registry.record import replace
from registry.resolve import DoorTarget
from tests.fakes.envelopes import DELIVERY, P, T, a_receipt
from tests.fakes.evidence import (
    BINDING,
    NONCE,
    OTHER,
    a_config,
    a_report,
    a_row,
    a_run,
    an_evidence,
    told,
)
from tests.fakes.household import LINE, Household, asked, conclude

AIM = Aim(DoorTarget("fable", T, a_row(), "target", None), a_row(), Binding(T, P))
SILENT = Unreadable("empty")


@pytest.fixture
def home(tmp_path):
    """A household with its state folder."""
    household = Household(tmp_path)
    open_state(household.house().places)
    yield household
    household.registry.close()


def pack(home, **changes):
    """The parcel of the first attempt."""
    return post.pack(AIM, a_config(**changes), home.house(), asked(attempt=1))


def test_a_parcel_names_the_postbox_the_target_and_its_own_folder(home):
    """INTERFACE 4: the carrier resumes P, knows the target by its id, and T is nowhere in argv."""
    home.claude("exit 0")
    parcel = pack(home)

    assert parcel.folder == f"{home.state}/attempts/{DELIVERY}.1"
    assert parcel.argv[0] == f"{home.root}/bin/claude"
    assert parcel.argv[3] == P
    assert parcel.argv[-1] == f"zdo knock {DELIVERY}"
    assert not any(T in word for word in parcel.argv)
    assert (P, "fable", parcel.folder, "anonymous") == (
        parcel.env["ZDO_CARRIER_SESSION"],
        parcel.env["ZDO_CARRIER_DOOR_TARGET"],
        parcel.env["ZDO_CARRIER_ATTEMPT"],
        parcel.env["ZDO_SENDER_SESSION_ID"],
    )


def test_a_program_that_is_not_found_stays_as_it_was_named(home):
    """The spawn will say so, with the name that the configuration has."""
    assert pack(home, claude_bin="no-such").argv[0] == "no-such"


def test_a_caller_without_a_path_gets_the_platforms(home):
    """Not the current folder."""
    house = replace(home.house(), env={})
    parcel = post.pack(AIM, a_config(claude_bin="sh"), house, asked())

    assert parcel.argv[0] in [f"{folder}/sh" for folder in os.defpath.split(":") if folder]


def test_a_plan_shows_names_and_no_values(home):
    """Values of the environment may be private."""
    parcel = pack(home)
    plan = post.plan_of(parcel)

    assert plan.argv == parcel.argv
    assert list(plan.env) == sorted(parcel.env)


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


def test_what_is_laid_out_is_what_the_carrier_needs(home):
    """Settings and permit, in a folder of its own."""
    parcel = pack(home)
    post.lay_out(parcel, post.envelope_of(asked(), a_config(), LINE, NONCE))

    assert ["permit", "settings.json"] == sorted(os.listdir(parcel.folder))


def test_a_folder_that_cannot_be_made_is_spool_unwritable(home):
    """73: nothing was started."""
    parcel = pack(home)
    os.rmdir(home.house().places.attempts)

    with pytest.raises(SpoolUnwritable, match=f"{DELIVERY}.1: No such file"):
        post.lay_out(parcel, post.envelope_of(asked(), a_config(), LINE, NONCE))


@pytest.mark.parametrize("damage", ["file", "folder"])
def test_a_folder_that_is_there_already_is_no_fault_of_the_disk(home, damage):
    """Somebody tried this attempt before: that is a doubt, and it stays as it is."""
    parcel = pack(home)
    if damage == "file":
        Path(parcel.folder).touch()
    else:
        os.mkdir(parcel.folder)

    with pytest.raises(AttemptExists, match=DELIVERY):
        post.lay_out(parcel, post.envelope_of(asked(), a_config(), LINE, NONCE))
    assert damage == "file" or os.listdir(parcel.folder) == []


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
    parcel = pack(home)
    envelope = post.envelope_of(asked(), a_config(), LINE, NONCE)
    prepare(parcel.folder, "true", envelope)

    post.forget_if_settled(asked(attempt=1, verdict=TABLE[name]), home.house())

    assert stays == os.path.exists(parcel.folder)


def test_a_folder_that_is_gone_is_forgotten_already(home):
    """Nothing to do is not an error."""
    post.forget_if_settled(asked(verdict=TABLE["carrier-exit"]), home.house())

    assert os.listdir(home.house().places.attempts) == []


def test_a_verdict_compares_with_the_binding_and_the_nonce():
    """The judge gets the two sessions side by side."""
    other = post.conclude(asked(), an_evidence(), Binding(OTHER, P), NONCE)
    foreign = post.conclude(asked(), an_evidence(), BINDING, "another")

    assert ("door-mismatch", "receipt-foreign") == (other.verdict.name, foreign.verdict.name)
