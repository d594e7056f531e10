"""Addresses: the first form that names something decides, and two candidates are a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from registry.errors import AddressAmbiguous, AddressUnknown, TicketUnbound
from registry.ledger import Ledger
from registry.ledger_file import Reading
from registry.record import replace
from registry.resolve import DoorTarget, find_again, resolve
from registry.rows import Listing, Row
from registry.targets import DEFAULTS, Config, Target
from tests.fakes.scenes import LEDGER, a_roster, a_scene, an_owner

if TYPE_CHECKING:
    from registry.discover import Owner
    from registry.roster import Roster

FABLE = "388e03f6-0000-4000-8000-000000000001"
OTHER = "388e03f6-0000-4000-8000-000000000002"
AWAY = "388e03f6-0000-4000-8000-00000000000f"

ROW = Row(
    file="7.json",
    pid=7,
    session_id=FABLE,
    name="fable-1a",
    status="idle",
    cwd="/",
    socket="/s/7.sock",
    proc_start="1",
    started_at=None,
    status_at=None,
    waiting_for=None,
    version="2.1.332",
    entrypoint="cli",
    pid_domain=None,
)
SECOND = replace(ROW, file="8.json", pid=8, session_id=OTHER, name="other")
TARGETS = (
    Target("fable", "session", FABLE, None),
    Target("away", "session", AWAY, None),
    Target("by-name", "name", "other", None),
    Target("nobody", "name", "nobody", None),
    Target("job", "ticket", "TK-11665", None),
    Target("pane", "tsid", "w0t0p0", None),
    Target(OTHER, "session", FABLE, None),
)


UNREAD = Reading(Ledger(), LEDGER, "is not a plain file")


def config(*targets: Target) -> Config:
    """A configuration with *targets*."""
    values = dict(DEFAULTS, targets=targets, pass_env=())
    return Config(**values)


def found(address: str, *rows: Row, targets: tuple[Target, ...] = TARGETS) -> DoorTarget:
    """What *address* names among *rows*."""
    return resolve(address, a_scene(config(*targets), Listing(rows, ())))


@pytest.mark.parametrize("address", [FABLE, FABLE.upper(), f"{{{FABLE}}}", FABLE.replace("-", "")])
def test_a_session_is_found_by_every_spelling_of_its_id(address: str) -> None:
    """The id of a direct address is the canonical one."""
    assert DoorTarget(FABLE, FABLE, ROW, "session", None) == found(address, ROW, SECOND)


def test_a_session_without_a_row_comes_back_without_one() -> None:
    """Whether that is a refusal is judged after the binding."""
    assert DoorTarget(AWAY, AWAY, None, "session", None) == found(AWAY, ROW)


def test_a_configured_target_keeps_the_id_that_the_user_gave() -> None:
    """The configured id is what the carrier's environment shows."""
    assert DoorTarget("fable", FABLE, ROW, "target", TARGETS[0]) == found("fable", ROW, SECOND)
    assert DoorTarget("away", AWAY, None, "target", TARGETS[1]) == found("away", ROW)
    assert DoorTarget("by-name", OTHER, SECOND, "target", TARGETS[2]) == found(
        "by-name", ROW, SECOND
    )
    assert DoorTarget("nobody", None, None, "target", TARGETS[3]) == found("nobody", ROW)


def test_a_configured_id_goes_before_a_session() -> None:
    """The order of the forms is the interface's, also for an id that reads as a UUID."""
    assert DoorTarget(OTHER, FABLE, ROW, "target", TARGETS[6]) == found(OTHER, ROW, SECOND)


def test_a_configured_id_goes_before_a_display_name() -> None:
    """A session that calls itself like a target does not catch its lines."""
    thief = replace(SECOND, name="fable")

    assert found("fable", ROW, thief).row == ROW


@pytest.mark.parametrize("address", ["fable-1a", "name:fable-1a"])
def test_a_display_name_is_compared_exactly(address: str) -> None:
    """Bare or with its prefix."""
    assert DoorTarget(FABLE, FABLE, ROW, "name", None) == found(address, ROW, SECOND)


def test_a_name_that_looks_like_a_prefixed_one_is_found() -> None:
    """A session may call itself `name:x`."""
    odd = replace(ROW, name="name:x")

    assert odd == found("name:x", odd).row
    assert found("name:other", replace(ROW, name="name:other"), SECOND).row == SECOND


@pytest.mark.parametrize(
    "address",
    ["Fable-1a", "fable-1", "fable-1a ", "", "name:", "*", ".*", "../7", "7", "a\0b", "\ud800"],
)
def test_what_is_only_alike_is_unknown(address: str) -> None:
    """No folding, no prefix, no pattern, no path, no pid."""
    with pytest.raises(AddressUnknown) as caught:
        found(address, ROW, SECOND)

    assert address == caught.value.address


def test_a_session_without_a_name_is_not_the_empty_address() -> None:
    """Absent is not empty."""
    with pytest.raises(AddressUnknown):
        found("", replace(ROW, name=None))


def test_close_names_are_suggested_and_never_taken() -> None:
    """Ids and display names, without what would write on the terminal."""
    odd = replace(SECOND, name="fablo\x1b[2J")
    with pytest.raises(AddressUnknown) as caught:
        found("fabl", ROW, odd, replace(SECOND, name=None))

    assert caught.value.near == ("fable", "fable-1a", "fablo\ufffd[2J")
    assert str(caught.value).startswith("nothing is named 'fabl' (close: fable, ")


def test_a_long_address_gets_no_suggestions() -> None:
    """Comparing is cheap, measuring how alike is not."""
    with pytest.raises(AddressUnknown) as caught:
        found("f" * 60_000, ROW)

    assert caught.value.near == ()


@pytest.mark.parametrize("address", [FABLE, "fable", "fable-1a", "twins", "name:fable-1a"])
def test_two_candidates_are_a_refusal(address: str) -> None:
    """Whatever form names them; both are shown."""
    twin = replace(ROW, file="9.json", pid=9)
    targets = (*TARGETS, Target("twins", "name", "fable-1a", None))

    with pytest.raises(AddressAmbiguous) as caught:
        found(address, ROW, twin, targets=targets)

    expected = ("fable-1a (388e03f6, pid 7)", "fable-1a (388e03f6, pid 9)")
    assert expected == caught.value.candidates
    assert str(caught.value).startswith(f"'{address}' fits 2 sessions: fable-1a (388e03f6, pid 7)")


def test_a_candidate_without_a_name_shows_its_id() -> None:
    """And a hostile name writes nothing on the terminal."""
    rows = (replace(ROW, name=None), replace(ROW, pid=9, name="\x1b]0;x\x07"))

    with pytest.raises(AddressAmbiguous) as caught:
        found(FABLE, *rows)

    assert caught.value.candidates == ("(388e03f6, pid 7)", "\ufffd]0;x\ufffd (388e03f6, pid 9)")


TICKET, PANE = "TK-11665", "w0t0p0"


def seen(address: str, roster: Roster, *rows: Row) -> DoorTarget:
    """What *address* names among *rows*, by *roster*."""
    return resolve(address, a_scene(config(*TARGETS), Listing(rows, ()), roster))


def busy(row: Row, source: str = "session_ledger", ticket: str = TICKET) -> Owner:
    """*row* at work on *ticket*, in PANE."""
    return an_owner(row.pid, row.session_id, ticket=ticket, source=source, tsid=PANE)


@pytest.mark.parametrize("source", ["correlation", "main_process_argument", "session_ledger"])
@pytest.mark.parametrize("address", [TICKET, "tk-11665"])
def test_a_ticket_is_the_session_that_works_on_it(address: str, source: str) -> None:
    """By the source that bound it as the route; a session that only is called so is not meant."""
    named = replace(SECOND, name=TICKET)
    roster = a_roster(busy(ROW, source), an_owner(8, OTHER, tsid="elsewhere"), known=(TICKET,))

    assert DoorTarget(FABLE, FABLE, ROW, source, None) == seen(address, roster, ROW, named)
    assert DoorTarget("job", FABLE, ROW, "target", TARGETS[4]) == seen("job", roster, ROW, named)


@pytest.mark.parametrize("address", [f"tsid:{PANE}", "pane"])
def test_a_pane_is_the_session_that_runs_in_it(address: str) -> None:
    """Whatever it works on, and whatever another session is called."""
    named = replace(SECOND, name=f"tsid:{PANE}")
    roster = a_roster(an_owner(7, FABLE, tsid=PANE), an_owner(8, OTHER))

    found_row = seen(address, roster, ROW, named)

    assert (ROW, FABLE) == (found_row.row, found_row.session_id)
    assert ("target" if address == "pane" else "tsid") == found_row.route


@pytest.mark.parametrize("address", [TICKET, f"tsid:{PANE}", "job", "pane"])
def test_two_at_work_on_one_are_a_refusal(address: str) -> None:
    """Both are shown; also when they are one session twice."""
    twin = replace(ROW, file="9.json", pid=9)

    with pytest.raises(AddressAmbiguous) as caught:
        seen(address, a_roster(busy(ROW), busy(twin)), ROW, twin)

    assert ("fable-1a (388e03f6, pid 7)", "fable-1a (388e03f6, pid 9)") == caught.value.candidates


@pytest.mark.parametrize(
    ("roster", "why"),
    [
        (a_roster(an_owner(7, FABLE)), f"there is no {LEDGER}"),
        (a_roster(an_owner(7, FABLE), known=("TK-1",)), f"{LEDGER} has no create for it"),
        (a_roster(an_owner(7, FABLE), known=(TICKET,)), ""),
        (
            a_roster(an_owner(7, FABLE), known=(TICKET,), blind=("pid 7: gone",)),
            "not seen: pid 7: gone",
        ),
        (
            a_roster(an_owner(7, FABLE), known=(TICKET,), blind=("a", "b", "c")),
            "not seen: a, and 2 more: zdo sessions --all",
        ),
        (
            replace(a_roster(an_owner(7, FABLE), blind=("torn",)), reading=UNREAD),
            "not seen: torn",
        ),
    ],
)
@pytest.mark.parametrize("address", [TICKET, "job"])
def test_a_ticket_of_nobody_says_what_is_missing(address: str, roster: Roster, why: str) -> None:
    """TK REQUIRED, and as much of the reason as is known."""
    with pytest.raises(TicketUnbound) as caught:
        seen(address, roster, replace(ROW, name=TICKET))

    assert (TICKET, why) == (caught.value.ticket, caught.value.why)
    because = f" ({why})" if why else ""
    assert f"TK REQUIRED: no running session is bound to {TICKET}{because}" == str(caught.value)


OUTSIDER = an_owner(9, OTHER, ticket=TICKET, source="correlation", tsid=PANE)


@pytest.mark.parametrize("address", [TICKET, f"tsid:{PANE}", "job", "pane"])
def test_beside_one_whose_row_cannot_be_used_nobody_is_the_only_one(address: str) -> None:
    """It may be its work; which of the two is meant is not ours to choose."""
    with pytest.raises(AddressAmbiguous) as caught:
        seen(address, a_roster(busy(ROW), others=(OUTSIDER,)), ROW)

    outside = "pid 9, whose row cannot be used"
    assert ("fable-1a (388e03f6, pid 7)", outside) == caught.value.candidates


@pytest.mark.parametrize("address", [TICKET, "job"])
def test_a_ticket_of_one_whose_row_cannot_be_used_is_bound_to_nobody(address: str) -> None:
    """And the refusal says whose it is."""
    with pytest.raises(TicketUnbound, match="pid 9, whose row cannot be used, is"):
        seen(address, a_roster(an_owner(7, FABLE), others=(OUTSIDER,)), ROW)


def test_a_pane_of_one_whose_row_cannot_be_used_says_so() -> None:
    """A configured one does not run, as far as can be used."""
    roster = a_roster(an_owner(7, FABLE), others=(OUTSIDER,))

    with pytest.raises(AddressUnknown, match="pid 9, whose row cannot be used"):
        seen(f"tsid:{PANE}", roster, ROW)
    assert seen("pane", roster, ROW).row is None


def test_an_empty_pane_is_unknown_and_a_configured_one_does_not_run() -> None:
    """No session can call itself by a pane."""
    roster = a_roster(an_owner(7, FABLE), blind=("ps is missing",))
    row = replace(ROW, name=f"tsid:{PANE}")

    with pytest.raises(AddressUnknown) as caught:
        seen(f"tsid:{PANE}", roster, row)

    assert "(not seen: ps is missing)" in str(caught.value)
    assert DoorTarget("pane", None, None, "target", TARGETS[5]) == seen("pane", roster, row)


@pytest.mark.parametrize(
    "address", ["TK-", "TK-x", "TK-1-fix", "TK-\N{ARABIC-INDIC DIGIT ONE}", "11665"]
)
def test_what_only_looks_like_a_ticket_is_a_name(address: str) -> None:
    """A ticket is matched whole."""
    assert found(address, replace(ROW, name=address)).route == "name"


def test_a_session_is_found_again_with_all_its_rows() -> None:
    """Two rows with one id are the caller's to refuse."""
    twin = replace(ROW, pid=9)
    listing = Listing((ROW, SECOND, twin), ())

    assert (ROW, twin) == find_again(FABLE, listing)
    assert find_again(AWAY, listing) == ()
