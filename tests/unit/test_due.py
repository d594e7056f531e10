"""Which lines may go now: in order per session, none waiting for another session's."""

from __future__ import annotations

import hashlib

import pytest

from dispatch import due, journal, keep, kept, pace, spool
from dispatch.database import Database
from dispatch.due import Halt, due_next
from dispatch.outcome import Outcome, queued
from registry.ids import new_uuid
from registry.record import replace
from registry.targets import Target
from tests.fakes.envelopes import P, T
from tests.fakes.evidence import OTHER, a_config, a_listing, a_row
from tests.fakes.household import asked, envelope_of, key_of
from tests.fakes.rows import a_line
from tests.fakes.scenes import a_scene

NOW = 1_796_048_000.25
YEAR_S = 365 * 86_400.0
LONGEST_S = due.SCHEDULE.longest_s

FABLE = Target("fable", "session", T, None)
NAMED = Target("whoever", "name", "fable", None)
SONNET = Target("sonnet", "session", OTHER, None)
CONFIG = a_config(FABLE, SONNET)
RUNS = a_row()
ELSE = a_row(session_id=OTHER, name="sonnet", pid=4202)


@pytest.fixture
def database(tmp_path):
    """An open database of one test."""
    opened = Database(str(tmp_path / "zdo.db"))
    yield opened
    opened.close()


def put(database, number, target="fable", *, text=None, idle=0):
    """Line *number* waits; its key."""
    body = (text or f"line {number}").encode()
    draft = spool.Draft(
        key_of(number), hashlib.sha256(body).digest(), body, target, "o", P, idle=idle
    )
    with database.writing() as link:
        assert spool.enqueue(link, draft, NOW, 1.5) is None
    return draft.key


def claim(database, number):
    """The relay is trying line *number*."""
    with database.writing() as link:
        spool.claim(link, [kept.find(link, key_of(number))], new_uuid(), P, NOW)


def settle(database, number, becomes):
    """The relay tried line *number*, and so it ended."""
    claim(database, number)
    with database.writing() as link:
        owner = kept.find(link, key_of(number)).owner
        assert spool.settle(link, key_of(number), owner, becomes, NOW)


def plan(database, *rows, config=CONFIG, now=NOW):
    """What may go by *rows*; T runs, if none are given."""
    with database.reading() as link:
        return due.plan(link, a_scene(config, a_listing(*(rows or (RUNS,)))), now)


def numbers(lines):
    """The numbers of the lines of *lines*, in their order."""
    return [int(each.line.key[-12:]) for each in lines]


def ready(database, *rows, **how):
    """The numbers of the lines that may go."""
    return numbers(plan(database, *rows, **how).ready)


def halts(database, *rows, **how):
    """What holds the others: number, class and the moment when it is over."""
    found = plan(database, *rows, **how).halts
    return [
        (number, halt.result.verdict.name, halt.due_at)
        for number, halt in zip(numbers(found), found, strict=True)
    ]


# Order.


def test_lines_go_in_the_order_of_their_arrival(database):
    """Whatever their keys are, and whatever the clock said."""
    for number in (3, 1, 2):
        put(database, number)

    assert [3, 1, 2] == ready(database)


def test_an_empty_spool_has_nothing_to_do(database):
    """Nothing is ready, nothing is held."""
    assert ((), ()) == (plan(database).ready, plan(database).halts)
    with database.reading() as link:
        assert () == due.targets_with_work(link)


def test_what_is_over_is_no_work(database):
    """Delivered and dead lines are not looked at; a sent one is, and holds nobody."""
    for number, becomes in enumerate(
        [Outcome(20, kept.DONE), Outcome(50, kept.REFUSED), Outcome(12, kept.DONE)]
    ):
        put(database, number, f"t{number}")
        settle(database, number, becomes)

    with database.reading() as link:
        assert ("t2",) == due.targets_with_work(link)
        assert () == due.first_lines(link, "t2")
    assert ([], []) == (ready(database), halts(database))


BLOCKS = {
    "in doubt": Outcome(kept.UNCERTAIN, kept.DOUBT),
    "not due": queued(NOW + 60),
    "claimed": None,
}


@pytest.mark.parametrize("block", BLOCKS)
def test_the_first_line_that_is_not_over_holds_back_the_rest(database, block):
    """In strict order: what comes behind it waits, whatever the reason."""
    for number in (1, 2, 3):
        put(database, number)
    if BLOCKS[block] is None:
        claim(database, 1)
    else:
        settle(database, 1, BLOCKS[block])

    assert [] == ready(database)
    assert [1] == [number for number, _, _ in halts(database)]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_line_in_the_middle_holds_back_only_what_is_behind_it(database, block):
    """The ones before it go."""
    for number in (1, 2, 3):
        put(database, number)
    if BLOCKS[block] is None:
        claim(database, 2)
    else:
        settle(database, 2, BLOCKS[block])

    assert [1] == ready(database)
    assert [2] == [number for number, _, _ in halts(database)]


def test_a_line_that_is_sent_holds_nobody(database):
    """It is in; that the model has not been seen to have it yet is no reason to wait."""
    put(database, 1)
    put(database, 2)
    settle(database, 1, Outcome(kept.SENT, kept.DONE))

    assert [2] == ready(database)


SPELLINGS = ("fable", T, "name:fable", "whoever")
ALL = a_config(FABLE, NAMED, SONNET)


def test_a_session_has_one_order_however_it_is_addressed(database):
    """Its configured ids, its UUID, its name: one queue, by arrival."""
    for number in range(8):
        put(database, number, SPELLINGS[number % 4])

    assert list(range(8)) == ready(database, config=ALL)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("first", SPELLINGS)
@pytest.mark.parametrize("then", SPELLINGS)
def test_what_waits_by_one_spelling_holds_back_every_other(database, first, then, block):
    """A script that names the session otherwise does not overtake."""
    put(database, 1, first)
    put(database, 2, then)
    if BLOCKS[block] is None:
        claim(database, 1)
    else:
        settle(database, 1, BLOCKS[block])

    assert [] == ready(database, config=ALL)


@pytest.mark.parametrize("first", SPELLINGS)
@pytest.mark.parametrize("then", SPELLINGS)
def test_a_line_for_an_idle_session_holds_back_every_other_spelling(database, first, then):
    """Its session is busy; what came later waits with it, what came before goes."""
    busy = a_row(status="busy")
    put(database, 1, then)
    put(database, 2, first, idle=1)
    put(database, 3, then)

    assert [1] == ready(database, busy, config=ALL)
    assert (2, None) == halts(database, busy, config=ALL)[0][::2]
    assert [1, 2, 3] == ready(database, RUNS, config=ALL)


def test_an_address_that_cannot_be_bound_holds_its_session_back(database):
    """What was said first is heard first, though another spelling would find a way."""
    unbound = a_config(Target("fable", "session", T, ""), SONNET)
    put(database, 1)
    put(database, 2, T)
    put(database, 3, "sonnet")

    assert [3] == ready(database, RUNS, ELSE, config=unbound)
    assert [(1, "carrier-unbound", None)] == halts(database, RUNS, ELSE, config=unbound)


def test_of_two_held_spellings_the_earlier_counts(database):
    """What came before both goes, whichever of them is asked first."""
    busy = a_row(status="busy")
    unbound = a_config(Target("alpha", "session", T, ""), Target("zeta", "session", T, ""))
    put(database, 1, T)
    put(database, 2, "zeta")
    put(database, 3, T)
    put(database, 4, "alpha")

    assert [1] == ready(database, busy, config=unbound)
    assert [4, 2] == [number for number, _, _ in halts(database, config=unbound)]


def test_sessions_do_not_wait_for_each_other(database):
    """One is in doubt, one does not run; the third gets its lines."""
    third = "0a000000-0000-4000-8000-0000000000aa"
    for number, target in enumerate([OTHER, OTHER, third, T, T]):
        put(database, number, target)
    settle(database, 0, BLOCKS["in doubt"])

    assert [3, 4] == ready(database, RUNS, ELSE)
    assert {0, 2} == {number for number, _, _ in halts(database, RUNS, ELSE)}


def test_the_lines_of_all_sessions_come_in_the_order_of_arrival(database):
    """A round takes them as they came."""
    for number, target in enumerate(["sonnet", "fable", "sonnet", "fable"]):
        put(database, number, target)

    assert [0, 1, 2, 3] == ready(database, RUNS, ELSE)


def test_another_postbox_is_the_next_round(database):
    """One session, two ways to it: in their order, one after the other."""
    own = "90000000-0000-4000-8000-000000000001"
    config = a_config(Target("fable", "session", T, own))
    put(database, 1, T)
    put(database, 2, "fable")
    put(database, 3, T)

    assert [1] == ready(database, config=config)
    assert [(2, "unknown", NOW)] == halts(database, config=config)


# Time.


@pytest.mark.parametrize(
    ("wait", "goes"),
    [(-1.0, True), (0.0, True), (0.5, False), (LONGEST_S, False), (LONGEST_S + 0.5, True)],
)
def test_a_line_goes_when_it_is_due_or_its_wait_is_longer_than_any(database, wait, goes):
    """Nobody set it so far ahead: the clock was set back since."""
    put(database, 1)
    settle(database, 1, queued(NOW + wait))

    assert ([1] if goes else []) == ready(database)
    assert goes or [(1, "unknown", NOW + wait)] == halts(database)


def test_a_target_that_appears_is_served_whatever_its_back_off_says(database):
    """It was not there: nothing was tried, and waiting longer is for nobody's good."""
    put(database, 1)
    with database.writing() as link:
        spool.rest(link, key_of(1), queued(NOW + 600, kept.WAITING), NOW)

    assert [1] == ready(database)


@pytest.mark.parametrize("row", [(), (a_row(status="stopped"),), (a_row(status=None),)])
def test_a_target_that_takes_no_line_is_waited_for(database, row):
    """Gone, or not open: known by a class, and no moment is known when it will be."""
    put(database, 1)
    found = halts(database, *(row or (ELSE,)))

    expected = "target-status" if row else "target-not-running"
    assert [(1, expected, None)] == found


def test_the_first_moment_is_when_a_follower_looks_again():
    """What only its target can end has none."""
    line = a_line()
    halted = [Halt(line, None), Halt(line, None, 9.0), Halt(line, None, 7.0)]

    assert (7.0, None) == (due_next(halted), due_next(halted[:1]))
    assert due_next([]) is None


# Pace.


def said(database, texts, at=NOW, session=T):
    """These texts have gone to *session*."""
    with database.writing() as link:
        pace.note(link, session, [a_line(body=text.encode()) for text in texts], at)


def test_thirty_lines_go_at_once_and_the_rest_in_a_minute(database):
    """What an inbox takes; the next one waits, and so do all behind it."""
    for number in range(45):
        put(database, number)

    assert list(range(30)) == ready(database)
    assert [(30, "unknown", NOW)] == halts(database)
    said(database, [f"line {number}" for number in range(30)])
    for number in range(30):
        settle(database, number, Outcome(kept.DELIVERED, kept.DONE))
    assert [] == ready(database, now=NOW + 59.5)
    assert [(30, "unknown", NOW + 60)] == halts(database, now=NOW + 59.5)
    assert list(range(30, 45)) == ready(database, now=NOW + 60)


def test_the_minute_is_the_sessions_and_not_the_addresses(database):
    """Two spellings get no second allowance."""
    for number in range(40):
        put(database, number, SPELLINGS[number % 4])

    assert list(range(30)) == ready(database, config=ALL)


def test_another_sessions_minute_is_its_own(database):
    """None waits for another's."""
    said(database, [str(number) for number in range(30)], session=OTHER)
    put(database, 1)
    put(database, 2, "sonnet")

    assert [1] == ready(database, RUNS, ELSE)


def test_equal_texts_are_spaced(database):
    """The second would be dropped as a duplicate; what is behind it keeps its place."""
    for number, text in enumerate(["green", "red", "green", "blue"]):
        put(database, number, text=text)

    assert [0, 1] == ready(database)
    assert [(2, "unknown", NOW + 31)] == halts(database)


def test_a_text_that_was_said_lately_waits(database):
    """31 seconds from then on; the clock that was set back does not lengthen it."""
    put(database, 1, text="green")
    said(database, ["green"], at=NOW - 10)

    assert [(1, "unknown", NOW + 21)] == halts(database)
    assert [1] == ready(database, now=NOW + 21)
    assert [1] == ready(database, now=NOW - 20)
    assert [1] == ready(database, now=NOW - YEAR_S)


@pytest.mark.parametrize("jump", [-YEAR_S, YEAR_S])
def test_a_clock_that_jumps_blocks_nobody(database, jump):
    """Back-off, minute and spacing: all lines are ready at once, in their order."""
    for number in range(3):
        put(database, number, text="green" if number == 0 else None)
    settle(database, 0, queued(NOW + 890))
    said(database, ["green", *map(str, range(29))])

    assert [] == ready(database)
    assert [0, 1, 2] == ready(database, now=NOW + jump)


@pytest.mark.parametrize("number", [1, 2])
def test_a_line_has_one_turn_in_a_pass(database, number):
    """However short its back-off is; it holds back the rest, and is due again at once."""
    for each in (1, 2, 3):
        put(database, each)

    with database.reading() as link:
        found = due.plan(link, a_scene(CONFIG, a_listing(RUNS)), NOW, {key_of(number)})

    assert list(range(1, number)) == numbers(found.ready)
    assert [(number, NOW)] == [(int(halt.line.key[-12:]), halt.due_at) for halt in found.halts]


# Who is meant.


def test_a_name_that_only_looks_like_a_target_of_once_is_another(database):
    """Its configured target is gone: the session that bears the name never gets its lines."""
    gone = a_config(SONNET)
    put(database, 1, "fable")

    found = plan(database, RUNS, config=gone)

    assert [] == numbers(found.ready)
    (halt,) = found.halts
    assert ("target-unknown", "fable", None) == (
        halt.result.verdict.name,
        halt.result.target.id,
        halt.result.target.session_id,
    )
    assert halt.result.carrier.session_id is None


def test_whoever_bears_the_name_of_a_target_of_once_is_not_held_back_by_it(database):
    """Its own lines, by its own addresses, go."""
    gone = a_config(SONNET)
    put(database, 1, "fable")
    put(database, 2, T)
    put(database, 3, "name:fable")

    assert [2, 3] == ready(database, RUNS, config=gone)


def test_a_name_that_was_asked_for_as_one_is_whoever_bears_it(database):
    """`name:` waits for a session of that name."""
    put(database, 1, "name:fable")
    assert [(1, "target-unknown", None)] == halts(database, ELSE)

    assert [1] == ready(database, RUNS)


def test_two_of_that_name_are_nobody(database):
    """67, and it waits until there is one."""
    put(database, 1, "name:fable")

    twin = a_row(session_id=OTHER, pid=4202)
    assert [(1, "target-ambiguous", None)] == halts(database, RUNS, twin)


def test_a_target_that_has_become_the_postbox_is_misbound(database):
    """2, and nothing is tried."""
    put(database, 1, P)

    assert [(1, "carrier-misbound", None)] == halts(database, RUNS)


def test_a_ready_line_knows_what_a_kiss_would_know(database):
    """Delivery, key, sender, measure, target, postbox; each its own."""
    put(database, 1)
    put(database, 2)

    first, second = plan(database).ready

    assert (key_of(1), key_of(2)) == (first.result.delivery_id, second.result.delivery_id)
    assert ("relay", key_of(2), "anonymous", 6) == (
        second.result.command,
        second.result.key,
        second.result.sender,
        second.result.line.bytes,
    )
    assert ("fable", T, 4201, P) == (
        second.result.target.id,
        second.result.target.session_id,
        second.result.target.pid,
        second.result.carrier.session_id,
    )
    assert (T, P) == (second.aim.binding.target_session, second.aim.binding.postbox)


def test_a_given_key_is_shown_as_it_was_given():
    """As the kiss showed it."""
    assert "build-812" == due.start_of(a_line(given_key="build-812"), "relay").key


# Size.


def rows_read(database, act):
    """How many rows SQLite has handed over for *act*, and what it came to."""
    fetched = []
    with database.reading() as link:
        link.row_factory = lambda _, row: fetched.append(row) or row
        found = act(link)
        link.row_factory = None
    return len(fetched), found


def heap(database, *numbers):
    """Lines for a target that is not there."""
    with database.writing() as link:
        for number in range(*numbers):
            body = b"line %d" % number
            digest = hashlib.sha256(body).digest()
            asked = spool.Draft(key_of(number), digest, body, "dead", "o", P)
            spool.enqueue(link, asked, NOW, 1.5)


def steps(database, config):
    """How many tens of steps SQLite's machine takes for a plan: a cost that no load changes."""
    taken = []
    with database.reading() as link:
        link.set_progress_handler(lambda: taken.append(1) and None, 10)
        due.plan(link, a_scene(config, a_listing(RUNS)), NOW)
        link.set_progress_handler(None, 10)
    return len(taken)


def test_ten_thousand_lines_to_a_dead_target_cost_one_to_a_live_one_nothing(database):
    """A bounded number of rows is read, and steps are taken; the live one is ready."""
    config = a_config(FABLE, Target("dead", "session", OTHER, None))
    heap(database, 1000, 1100)
    put(database, 1)
    few = steps(database, config)
    heap(database, 1100, 11_000)
    many = steps(database, config)

    read, found = rows_read(
        database, lambda link: due.plan(link, a_scene(config, a_listing(RUNS)), NOW)
    )

    assert [1] == numbers(found.ready)
    assert ["target-not-running"] == [halt.result.verdict.name for halt in found.halts]
    assert read < 100
    assert 0 < many <= 1.2 * few


def begin(database, number, session):
    """An attempt of line *number* in *session*, which nobody knows the end of."""
    claim(database, number)
    with database.writing() as link:
        result = asked(delivery_id=key_of(number), key=key_of(number))
        result = replace(result, target=replace(result.target, session_id=session))
        keep.begun(link, journal.CLAIMED, result, envelope_of(replace(result, attempt=1)), NOW)
        owner = kept.find(link, key_of(number)).owner
        assert spool.settle(link, key_of(number), owner, BLOCKS["in doubt"], NOW)


def test_a_doubt_stays_with_the_session_that_it_is_in(database):
    """Its address means another session now: that one waits for nothing, the first one does."""
    put(database, 1, "whoever")
    begin(database, 1, T)
    put(database, 2, "whoever")
    put(database, 3, "sonnet")
    put(database, 4, "fable")
    bearer = replace(ELSE, name="fable")
    config = a_config(FABLE, SONNET, NAMED)

    found = plan(database, replace(RUNS, name="other"), bearer, config=config)

    assert [2, 3] == numbers(found.ready)
    assert [1] == numbers(found.halts)
    assert T == found.halts[0].result.target.session_id


def test_a_doubt_without_a_story_stays_with_its_address(database):
    """What a salvage saved without its entries has nothing else."""
    put(database, 1)
    settle(database, 1, BLOCKS["in doubt"])
    put(database, 2)

    assert [] == ready(database)
