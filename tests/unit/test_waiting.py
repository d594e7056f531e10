"""Which addresses may wait, after which refusals a line is kept, and what is stored."""

from __future__ import annotations

import hashlib

import pytest

from carrier.errors import CarrierMisbound, CarrierUnbound
from dispatch import kept, waiting
from dispatch.errand import Errand, Order
from dispatch.errors import KeyConflict
from dispatch.result import LineFacts
from dispatch.telling import Telling
from dispatch.verdict import TABLE
from registry.errors import AddressAmbiguous, AddressUnknown, TicketUnbound
from registry.record import replace
from tests.fakes.envelopes import DELIVERY, P, T
from tests.fakes.evidence import OTHER
from tests.fakes.household import LINE, Household, asked

CONFIG = f"""\
[targets.fable]
session = "{T}"

[targets.named]
name = "whoever"

[targets.itself]
session = "{P}"

[targets.alone]
session = "{OTHER}"
carrier_session = ""

[targets.lost]
session = "{OTHER}"
carrier_session = "named"
"""


@pytest.fixture
def home(tmp_path):
    """A household with targets of every kind, of which none runs."""
    household = Household(tmp_path)
    household.configure(CONFIG)
    yield household
    household.registry.close()


def errand(home, line=LINE, *, address="fable", **changes):
    """A kiss whose line was read."""
    order = Order(address, lambda: line, "me", key=DELIVERY, **changes)
    facts = LineFacts(len(line), hashlib.sha256(line).hexdigest())
    telling = Telling(asked(line=facts))
    telling.line = line
    return Errand(order, home.house(), telling, owner="token")


SAFE = {name for name, verdict in TABLE.items() if verdict.exit in (75, 76)} | {
    "target-not-running"
}


@pytest.mark.parametrize("name", TABLE)
def test_a_line_is_kept_after_what_time_may_mend(name):
    """69 only for a target that does not run, every 75, every 76; and after nothing else."""
    assert (name in SAFE) == waiting.takes(TABLE[name])


def test_what_is_kept_provably_never_reached_the_door():
    """No class that may be in is among them."""
    assert {"queue"} == {TABLE[name].fate for name in SAFE}
    assert {"carrier-spawn", "interrupted", "queued"} == {
        name for name, verdict in TABLE.items() if verdict.fate == "queue"
    } - SAFE


def meant(home, address):
    """Target, session and postbox of an address that may wait."""
    telling = Telling(replace(asked(), target=asked().target))
    house = home.house()
    start = replace(asked(), target=type(asked().target)(), carrier=type(asked().carrier)())
    telling = Telling(start)
    waiting.check_address(address, house.config(), house, telling)
    result = telling.result
    return result.target.id, result.target.session_id, result.carrier.session_id


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("fable", ("fable", T, P)),
        ("named", ("named", None, P)),
        (T, (T, T, P)),
        (T.upper(), (T, T, P)),
        (OTHER, (OTHER, OTHER, P)),
        ("name:nobody", ("name:nobody", None, P)),
    ],
)
def test_what_is_known_need_not_run(home, address, expected):
    """A configured target, a session id, a name that is asked for as one."""
    assert expected == meant(home, address)


def test_a_configured_ticket_need_not_be_bound(home):
    """As a configured name need not be borne; a bare ticket means who has it now."""
    home.configure('[targets.job]\nticket = "TK-1"\n')
    assert ("job", None, P) == meant(home, "job")

    with pytest.raises(TicketUnbound):
        meant(home, "TK-1")


@pytest.mark.parametrize("address", ["fable-7", "name:fable-7"])
def test_a_name_that_somebody_bears_now_means_that_session(home, address):
    """Another one that takes the name later is not meant."""
    home.registry.add(sessionId=T, name="fable-7", status="busy")

    assert (T, T, P) == meant(home, address)


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("nobody", AddressUnknown),
        ("", AddressUnknown),
        ("name:\x1b[31m", AddressUnknown),
        ("name:two\nlines", AddressUnknown),
        ("name:\udcff", AddressUnknown),
        ("TK-7", TicketUnbound),
        ("tsid:3", AddressUnknown),
        ("itself", CarrierMisbound),
        (P, CarrierMisbound),
        (P.upper(), CarrierMisbound),
        ("alone", CarrierUnbound),
        ("lost", CarrierUnbound),
    ],
)
def test_an_address_that_can_never_be_served_is_refused_at_once(home, address, error):
    """Nobody shall wait five days for it."""
    with pytest.raises(error):
        meant(home, address)


def test_a_name_of_two_is_nobodys(home):
    """Not even later: who is meant must be said now."""
    for session in (T, OTHER):
        home.registry.add(sessionId=session, name="twin")

    with pytest.raises(AddressAmbiguous):
        meant(home, "name:twin")


def test_a_station_without_a_postbox_keeps_no_name(home):
    """Nothing would ever carry it."""
    home.configure('[station]\ncarrier_session = ""\n')

    with pytest.raises(CarrierUnbound):
        meant(home, "name:nobody")


# Stored.


def test_a_stored_line_waits_for_the_relay(home):
    """On disk, with its key, its sender and its target; nothing was started."""
    result = waiting.store(errand(home, if_idle=True, queue=True))

    line = home.line()
    assert ("queued", None, None) == (result.verdict.name, result.reason, result.attempt)
    assert (kept.QUEUED, LINE, "fable", "me", DELIVERY, 1, 1) == (
        line.state, line.body, line.target, line.sender, line.given_key, line.idle, line.kept
    )  # fmt: skip
    assert [("queued", "queued")] == home.story()
    assert line.is_whole


def test_a_line_that_is_kept_after_a_refusal_says_so(home):
    """The reason is the refusal."""
    result = waiting.store(errand(home), "carrier-busy: somebody drives it")

    assert ("queued", "carrier-busy: somebody drives it") == (result.verdict.name, result.reason)


def test_a_line_that_waits_already_is_not_stored_twice(home):
    """Same key, same bytes: one row, one entry, the same answer."""
    first = waiting.store(errand(home))
    second = waiting.store(errand(home))

    assert (first.verdict, first.delivery_id) == (second.verdict, second.delivery_id)
    assert [("queued", "queued")] == home.story()


def test_another_line_under_the_key_is_a_conflict(home):
    """65; the first stays."""
    waiting.store(errand(home))

    with pytest.raises(KeyConflict):
        waiting.store(errand(home, b"tests are red"))
    assert LINE == home.line().body


def test_a_key_that_has_a_verdict_keeps_it(home):
    """Delivered is delivered: it is not queued."""
    before = home.judged()

    assert before == waiting.store(errand(home))
    assert "sent" == home.state_of()


@pytest.mark.parametrize("name", ["name:\udcff", "name:two\nlines", "name:\x1b[31m"])
def test_a_name_that_no_session_can_bear_is_not_waited_for(home, name):
    """Nor could it be written down; the answer is that of a name nobody knows."""
    with pytest.raises(AddressUnknown):
        waiting.check_address(name, home.house().config(), home.house(), Telling(asked()))
