"""Who is speaking, and what a reader has seen: A02 and A04 to A08, on the real command line."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import shlex
import signal
import sqlite3
import subprocess
import termios

import pytest

from dispatch.rig.script import T
from tests.acceptance.saying import (
    EVENT_FIELDS,
    READER_FIELDS,
    REFUSED_READER,
    SENDER_FIELDS,
    complained,
    delivered,
    queued,
    refused,
    wait_for,
)
from tests.fakes.spools import an_event, put

ID = "c0000000-0000-4000-8000-00000000000c"
AMBIENT = ("ZDO_SESSION_ID", "AGENT_EVENT_BUS_SESSION_ID", "CLAUDE_CODE_SESSION_ID")


def answered(said, command):
    """The one object of a reader's command that went well."""
    assert (0, "", 1) == (said.exit, said.err, said.out.count("\n")), said
    told = said.json
    assert READER_FIELDS[command] == tuple(told)
    assert (1, command) == (told["v"], told["command"])
    return told


def denied(said, name, status, error, **facts):
    """The one object of a refusal, with exactly these *facts*, and its line on stderr."""
    complained(said, name, status)
    told = said.json
    before, after = REFUSED_READER
    assert (*before, *facts, *after) == tuple(told)
    assert (status, name, error, facts) == (
        told["exit"],
        told["class"],
        told["error"],
        {fact: told[fact] for fact in facts},
    )
    return told


def fill(rig, count):
    """*count* entries more, in the journal of a state folder that is in use."""
    with contextlib.closing(sqlite3.connect(f"{rig.state}/zdo.db", isolation_level=None)) as link:
        link.execute("BEGIN")
        for number in range(count):
            put(
                link,
                "event",
                an_event(f"d0000000-0000-4000-8000-{number:012d}", "queued", "queued"),
            )
        link.execute("COMMIT")


def read(rig, *words, session=ID):
    """The page that *session* goes on with."""
    return answered(
        rig.zdo("receipts", "--resume", "--json", "--session-id", session, *words), "receipts"
    )


def ids(told):
    """The entries on a page."""
    return [event["id"] for event in told["events"]]


@pytest.fixture
def reader(own_rig):
    """A rig with six entries and a registered session that begins at the first."""
    queued(own_rig, "fable", *"abcdef")
    answered(own_rig.zdo("register", "--session-id", ID, "--json"), "register")
    answered(own_rig.zdo("ack", "--session-id", ID, "--cursor", "0", "--json"), "ack")
    return own_rig


# -- A02


def test_a02_an_unregistered_sender_is_stored_as_it_is(own_rig):
    """Never an error; nobody is registered by it, and none is warned of."""
    own_rig.door()

    told = delivered(own_rig.zdo("kiss", "fable", "x", "--session-id", "who ever", "--json"))

    assert "who ever" == told["sender"]
    page = answered(own_rig.zdo("receipts", "--json"), "receipts")
    assert {"who ever"} == {event["sender"] for event in page["events"]}
    assert [] == answered(own_rig.zdo("senders", "--json"), "senders")["senders"]


@pytest.mark.parametrize("variable", AMBIENT)
def test_a02_register_never_adopts_the_ambient_id(own_rig, variable):
    """Only --session-id says who is meant."""
    said = own_rig.zdo("register", "--json", env={variable: ID})

    told = denied(said, "usage", 64, "session_missing")
    assert ID == told["sender"]
    assert [] == own_rig.zdo("senders", "--json").json["senders"]


# -- A04


def test_a04_a_page_has_its_entries_its_cursor_and_whether_there_is_more(reader):
    """What a delivery is, and how far it got, stands in each of them."""
    told = answered(reader.zdo("receipts", "--json", "--limit", "4"), "receipts")

    assert ([1, 2, 3, 4], 4, True) == (ids(told), told["next_cursor"], told["has_more"])
    first = told["events"][0]
    assert EVENT_FIELDS == tuple(first)
    assert ("lifecycle", "queued", "queued", 0, "fable", T, "anonymous", "none") == tuple(
        first[name]
        for name in (
            "level", "kind", "class", "exit", "target", "target_session_id", "sender", "proof"
        )
    )  # fmt: skip


def test_a04_a_peek_never_moves(reader):
    """A repeat gives the same page, in either order."""
    for order, shown in (("asc", [1, 2, 3]), ("desc", [3, 2, 1])):
        pages = [read(reader, "--peek", "--order", order, "--limit", "3") for _ in range(2)]

        assert pages[0] == pages[1]
        assert (shown, 3, True) == (ids(pages[0]), pages[0]["next_cursor"], pages[0]["has_more"])


def test_a04_the_next_cursor_is_the_highest_id_in_either_order(reader):
    """Printing newest first loses nothing: the next page is the next oldest."""
    pages = [read(reader, "--order", "desc", "--limit", "4") for _ in range(2)]

    assert [[4, 3, 2, 1], [6, 5]] == [ids(page) for page in pages]
    assert [(4, True), (6, False)] == [(page["next_cursor"], page["has_more"]) for page in pages]


def test_a04_a_page_is_full_before_anything_is_left_out(reader):
    """`has_more` and `next_cursor` are those of the whole page."""
    told = read(reader, "--limit", "4", "--level", "actionable")

    assert ([], 4, True) == (ids(told), told["next_cursor"], told["has_more"])


def test_a04_the_defaults_are_fifty_and_oldest_first(reader):
    """Without a word about either."""
    fill(reader, 60)

    assert list(range(1, 51)) == ids(read(reader))


def test_a04_a_first_resume_begins_at_the_tip_unless_told(own_rig):
    """And from then on nothing is left out."""
    queued(own_rig, "fable", *"abc")
    for session, words, first in ((ID, (), []), ("cron", ("--from-start",), [1, 2, 3])):
        own_rig.zdo("register", "--session-id", session)
        assert (first, 3) == (
            ids(told := read(own_rig, *words, session=session)),
            told["next_cursor"],
        )
    queued(own_rig, "fable", "d")
    assert [[4], [4]] == [ids(read(own_rig, session=session)) for session in (ID, "cron")]


@pytest.mark.parametrize("variable", AMBIENT)
def test_a04_a_reader_may_be_the_ambient_session(reader, variable):
    """In any spelling of its id."""
    said = reader.zdo("receipts", "--resume", "--limit", "2", "--json", env={variable: ID.upper()})

    assert [1, 2] == ids(answered(said, "receipts"))
    assert ID.upper() == said.json["sender"]
    assert [3, 4] == ids(read(reader, "--limit", "2"))


def test_a04_killed_between_page_and_cursor_the_same_page_comes_again(reader):
    """A pipe that nobody reads holds the page back; the cursor waits for it."""
    fill(reader, 1000)
    reads, writes = os.pipe()
    command = reader.command(
        "receipts", "--resume", "--json", "--limit", "1000", "--session-id", ID
    )
    started = subprocess.Popen(command, env=reader.env, stdin=subprocess.DEVNULL, stdout=writes)
    os.close(writes)
    os.read(reads, 1)  # the page is on its way, and larger than the pipe
    started.send_signal(signal.SIGKILL)
    started.wait(20)
    os.close(reads)

    assert [1, 2] == ids(read(reader, "--limit", "2"))


def test_a04_a_reader_that_goes_away_has_read_nothing(reader):
    """`| head -1` on a page that it did not take whole."""
    fill(reader, 1000)
    reads, writes = os.pipe()
    command = reader.command(
        "receipts", "--resume", "--json", "--limit", "1000", "--session-id", ID
    )
    started = subprocess.Popen(command, env=reader.env, stdin=subprocess.DEVNULL, stdout=writes)
    os.close(writes)
    os.read(reads, 1)
    os.close(reads)

    assert 0 == started.wait(20)
    assert [1, 2] == ids(read(reader, "--limit", "2"))


# -- A05


REFUSED_ACKS = [
    ("x", "cursor_not_a_number", {}),
    ("", "cursor_not_a_number", {}),
    ("4_2", "cursor_not_a_number", {}),
    ("\uff14", "cursor_not_a_number", {}),
    (" 4", "cursor_not_a_number", {}),
    ("-1", "cursor_negative", {}),
    ("7", "cursor_ahead", {"tip": 6}),
    ("9" * 5000, "cursor_ahead", {"tip": 6}),
]


@pytest.mark.parametrize("session", [ID, "fresh"])
def test_a05_an_ack_that_is_no_place_carries_the_readers_own(reader, session):
    """Null for a fresh one; and every one stays where it is."""
    reader.zdo("register", "--session-id", "fresh")
    reader.zdo("ack", "--session-id", ID, "--cursor", "4")
    stood = {ID: 4, "fresh": None}

    for cursor, error, facts in REFUSED_ACKS:
        said = reader.zdo("ack", "--session-id", session, "--cursor", cursor, "--json")
        denied(said, "usage", 64, error, cursor=stood[session], **facts)

    senders = reader.zdo("senders", "--json").json["senders"]
    assert stood == {each["session_id"]: each["cursor"] for each in senders}


def test_a05_who_is_nobody_is_told_so_before_any_cursor(reader):
    """Without a cursor key: 67 for an unknown or deleted session, 64 for none at all."""
    reader.zdo("register", "--session-id", "gone")
    reader.zdo("unregister", "--session-id", "gone")

    unknown = reader.zdo("ack", "--cursor", "x", "--json", "--session-id", "nobody")
    deleted = reader.zdo("ack", "--cursor", "x", "--json", "--session-id", "gone")
    missing = reader.zdo("ack", "--cursor", "x", "--json")

    denied(unknown, "target-unknown", 67, "session_unknown", session_id="nobody")
    assert ("session_deleted", 67) == (deleted.json["error"], deleted.exit)
    denied(missing, "usage", 64, "session_missing")
    assert [False] * 3 == ["cursor" in said.json for said in (unknown, deleted, missing)]


@pytest.mark.parametrize(("text", "kept"), [("+4", 4), ("-0", 0), ("0004", 4), ("6", 6)])
def test_a05_a_cursor_is_kept_canonically(reader, text, kept):
    """One number, whatever its spelling."""
    told = answered(reader.zdo("ack", "--session-id", ID, "--cursor", text, "--json"), "ack")

    assert (ID, kept, 0, 6) == tuple(
        told[name] for name in ("session_id", "cursor", "previous", "tip")
    )
    assert list(range(kept + 1, 7)) == ids(read(reader))


def test_a05_back_only_goes_who_says_so(reader):
    """Then the same entries come again."""
    reader.zdo("ack", "--session-id", ID, "--cursor", "6")
    words = ("ack", "--session-id", ID, "--cursor", "2", "--json")

    denied(reader.zdo(*words), "usage", 64, "cursor_behind", cursor=6)
    assert 2 == answered(reader.zdo(*words, "--allow-rewind"), "ack")["cursor"]
    assert [3, 4, 5, 6] == ids(read(reader))


# -- A06


@pytest.mark.parametrize(
    "words",
    [("--target", "fable"), ("--target", T), ("--class", "unknown"), ("--correlation", "nightly")],
)
def test_a06_nothing_is_lost_after_a_narrowed_read(reader, words):
    """Whatever it showed, the next whole page begins where the last one ended."""
    assert [1, 2] == ids(read(reader, "--limit", "2"))

    told = read(reader, *words)

    assert (6, ids(told)) == (
        told["next_cursor"],
        ids(told) if "--target" not in words else [3, 4, 5, 6],
    )
    assert [3, 4, 5, 6] == ids(read(reader))


def test_a06_a_level_moves(reader):
    """Who reads what asks for something never wants the rest."""
    reader.zdo("kiss", "itself", "x")  # refused: 2

    assert [7] == ids(read(reader, "--level", "actionable"))
    assert [] == ids(read(reader))


@pytest.mark.parametrize(
    ("cursor", "error"),
    [("", "cursor_not_a_number"), ("x", "cursor_not_a_number"), ("-1", "cursor_negative")],
)
def test_a06_a_malformed_read_cursor_is_refused(reader, cursor, error):
    """Never taken for the start."""
    said = reader.zdo("receipts", "--cursor", cursor, "--json")

    denied(said, "usage", 64, error, cursor=None)


def test_a06_a_cursor_of_another_database_is_refused(reader):
    """Whoever stands beyond the tip of a restored one would miss all that comes up to there."""
    read(reader)
    with contextlib.closing(
        sqlite3.connect(f"{reader.state}/zdo.db", isolation_level=None)
    ) as link:
        link.execute("DELETE FROM event WHERE id > 3")
        link.execute("UPDATE sqlite_sequence SET seq = 3 WHERE name = 'event'")

    for _ in range(2):
        said = reader.zdo("receipts", "--resume", "--json", "--session-id", ID)
        denied(said, "usage", 64, "cursor_invalid", cursor=6, tip=3)
    said = reader.zdo("receipts", "--cursor", "6", "--json", "--session-id", ID)
    denied(said, "usage", 64, "cursor_ahead", cursor=6, tip=3)
    reader.zdo("ack", "--session-id", ID, "--cursor", "2", "--allow-rewind")
    assert [3] == ids(read(reader))


# -- A07


def test_a07_a_drain_is_bounded_by_its_limit(reader):
    """500 entries, 50 a page: ten full ones, and the eleventh says that there is no more."""
    read(reader)
    fill(reader, 500)

    pages = [read(reader, "--limit", "50") for _ in range(10)]

    assert [50] * 10 == [len(page["events"]) for page in pages]
    assert list(range(7, 507)) == [number for page in pages for number in ids(page)]
    assert [True] * 10 == [page["has_more"] for page in pages]
    last = read(reader, "--limit", "50")
    assert ([], 506, False) == (ids(last), last["next_cursor"], last["has_more"])


# -- A08


@pytest.mark.parametrize("words", [(), ("--resume",), ("--cursor", "1"), ("--resume", "--peek")])
@pytest.mark.parametrize("named", [True, False])
def test_a08_the_reads_of_a_deleted_sender_are_refused(reader, words, named):
    """Named or ambient, with the moment and a way back."""
    reader.zdo("unregister", "--session-id", ID)
    (gone,) = reader.zdo("senders", "--json").json["senders"]
    who = {} if named else {"CLAUDE_CODE_SESSION_ID": ID.upper()}

    said = reader.zdo("receipts", *words, "--json", *(["--session-id", ID] * named), env=who)

    hint = said.json["hint"]
    facts = {"session_id": ID, "deleted_at": gone["deleted_at"], "hint": hint}
    denied(said, "target-unknown", 67, "session_deleted", **facts)
    assert "zdo register" in hint


def test_a08_a_second_unregister_says_already(reader):
    """With 0, and the first one's moment."""
    first = answered(reader.zdo("unregister", "--session-id", ID, "--json"), "unregister")
    second = answered(reader.zdo("unregister", "--session-id", ID, "--json"), "unregister")
    person = reader.zdo("unregister", "--session-id", ID)

    assert (False, first | {"already": True}) == (first["already"], second)
    assert (0, f"already unregistered at {first['deleted_at']}: {ID}\n") == (
        person.exit,
        person.out,
    )


def test_a08_a_registration_takes_a_session_back_with_its_cursor(reader):
    """Nothing that happened meanwhile is lost."""
    read(reader, "--limit", "4")
    reader.zdo("unregister", "--session-id", ID)
    queued(reader, "fable", "g")

    told = answered(reader.zdo("register", "--session-id", ID, "--json"), "register")

    assert (True, 4, None) == (told["new"], told["cursor"], told["deleted_at"])
    assert (*READER_FIELDS["register"][5:10],) == SENDER_FIELDS
    assert [5, 6, 7] == ids(read(reader))


def test_a08_a_deleted_sender_still_kisses_and_is_warned(reader):
    """Delivered, 0, one line on stderr."""
    reader.door()
    reader.zdo("unregister", "--session-id", ID)

    said = reader.zdo("kiss", "name:fable", "x", "--session-id", ID, "--json")

    assert (0, "delivered-start", ID) == (said.exit, said.json["class"], said.json["sender"])
    assert said.err.startswith(f"zdo: warning: the sender {ID} was unregistered at ")
    assert 1 == said.err.count("\n")


def test_a08_a_deleted_target_is_67(own_rig):
    """Nothing is started for a session that wants no lines."""
    own_rig.door()
    own_rig.zdo("register", "--session-id", T)
    own_rig.zdo("unregister", "--session-id", T)

    said = own_rig.zdo("kiss", "fable", "x", "--json")

    assert [] == own_rig.runs()
    refused(own_rig, said, "target-unknown", 67)


def test_a04_a_page_that_a_closed_stdout_swallowed_is_not_read(own_rig):
    """Nothing was printed, so nothing was read."""
    rig = own_rig
    for number in range(3):
        rig.zdo("kiss", "nobody", f"line {number}")
    rig.zdo("register", "--session-id", "me")
    words = ("receipts", "--resume", "--from-start", "--session-id", "me")
    for extra in ((), ("--json",)):
        argv = " ".join(map(shlex.quote, rig.command(*words, *extra)))
        subprocess.run(["sh", "-c", f"{argv} >&-"], env=rig.env, check=False)

    page = rig.zdo(*words, "--json").json

    assert [1, 2, 3] == [each["id"] for each in page["events"]]


def test_a04_reading_begins_when_it_was_first_asked_for(own_rig):
    """A first resume is on disk before its page: what comes from then on is unread."""
    rig = own_rig
    rig.zdo("kiss", "nobody", "before")
    rig.zdo("register", "--session-id", "me")
    words = ("receipts", "--resume", "--json", "--session-id", "me")
    lock = os.open(f"{rig.state}/spool.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    said = rig.zdo(*words)
    os.close(lock)
    assert 73 == said.exit
    assert "events" not in said.json
    assert [] == rig.zdo(*words).json["events"]
    rig.zdo("kiss", "nobody", "after")

    assert [2] == [each["id"] for each in rig.zdo(*words).json["events"]]


def test_a04_ctrl_c_ends_a_page_that_nobody_takes(reader):
    """130, no second object on stdout, and the same page comes again."""
    read(reader)
    fill(reader, 500)
    words = ("receipts", "--resume", "--limit", "1000", "--json", "--session-id", ID)
    running = reader.start(*words)
    wait_for(lambda: _waiting(running.stdout.fileno()) == 1 << 16)
    running.send_signal(signal.SIGINT)
    # Some of the page has been read when it ends; the rest comes to nobody.
    out, err = running.communicate(timeout=10)

    assert (130, 0) == (running.returncode, out.count("\n")), err
    assert "the same page comes again" in err
    assert 500 == len(read(reader, "--limit", "1000")["events"])


def _waiting(pipe: int) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]
