"""The commands of readers: what each says, and that a cursor moves after its page was said."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
import sys

import pytest

from dispatch import senders
from dispatch.cli import app, reading
from dispatch.cli.commands import Usage
from dispatch.render import failure_line
from dispatch.senders import LOST_CURSOR
from tests.acceptance.saying import EVENT_FIELDS, READER_FIELDS, REFUSED_READER, SENDER_FIELDS
from tests.fakes.household import Household, asked, key_of

ID = "a0000000-0000-4000-8000-00000000000a"

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A household that this process lives in, with five lines queued."""
    household = Household(tmp_path)
    for name, value in household.env.items():
        monkeypatch.setenv(name, value)
    for number in range(1, 6):
        household.queued(key_of(number))
    yield household
    household.registry.close()


@pytest.fixture
def zdo(capsys):
    """A command with --json: its status, its object and what stands on stderr."""

    def run(*words):
        status = app.run([*words, "--json"])
        said = capsys.readouterr()
        assert 1 == said.out.count("\n"), said
        return status, json.loads(said.out), said.err

    return run


@pytest.fixture
def speak(capsys):
    """A command for a person: its status and both streams."""

    def run(*words):
        status = app.run(list(words))
        return status, *capsys.readouterr()

    return run


def cursor_of(home, session=ID):
    """Where *session* stands."""
    with home.opened() as database, database.reading() as link:
        return senders.find(link, session).cursor


def ids(told):
    """The entries on a page."""
    return [event["id"] for event in told["events"]]


def refused(found, name, status, error, **facts):
    """A refusal in both forms, with exactly the facts that it has."""
    ended, told, err = found
    assert (status, name, status, error) == (ended, told["class"], told["exit"], told["error"])
    before, after = REFUSED_READER
    assert (*before, *facts, *after) == tuple(told)
    assert facts == {fact: told[fact] for fact in facts}
    assert f"{failure_line(name, told['reason'], told['advice'])}\n" == err


def test_a_page_of_the_journal_is_one_object(zdo):
    """Everybody may read, also who never registered."""
    status, told, err = zdo("receipts", "--limit", "3")

    assert (0, "", READER_FIELDS["receipts"]) == (status, err, tuple(told))
    assert (1, "receipts", "anonymous", "asc") == tuple(told.values())[:4]
    assert ([1, 2, 3], 3, True) == (ids(told), told["next_cursor"], told["has_more"])
    assert all(EVENT_FIELDS == tuple(event) for event in told["events"])
    assert [key_of(1), key_of(2), key_of(3)] == [event["delivery_id"] for event in told["events"]]


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (("--limit", "2"), ["1", "2", "more"]),
        (("--limit", "2", "--order", "desc"), ["5", "4"]),
        (("--limit", "2", "--order", "desc", "--cursor", "1"), ["3", "2", "more"]),
        (("--limit", "6"), ["1", "2", "3", "4", "5"]),
        (("--class", "surfaced"), []),
    ],
)
def test_a_person_gets_a_line_an_entry(speak, words, lines):
    """And is told when there is more in that direction."""
    status, out, err = speak("receipts", *words)

    assert (0, "") == (status, err)
    assert lines == [line.split()[0] for line in out.splitlines()]


def test_a_line_says_what_happened_and_why(home, speak):
    """On one line, whatever a reason holds."""
    result = asked(reason="a\x1bb")
    home.alter(
        "UPDATE event SET kind = 'judged', class = 'unknown', body = ? WHERE id = 5",
        json.dumps({"class": "unknown", "result": {"reason": result.reason}}),
    )

    lines = speak("receipts")[1].splitlines()

    assert f"  lifecycle  {key_of(1)}  fable  queued queued" in lines[0]
    assert lines[4].endswith(f"  actionable  {key_of(5)}  -  judged unknown: a\\x1bb")


def test_a_registration_is_said_and_kept(home, zdo):
    """In one spelling, with a name for people; the second is no news."""
    spelled = f"{{{ID.upper()}}}"
    status, told, err = zdo("register", "--session-id", spelled, "--name", "nightly")

    assert (0, "", READER_FIELDS["register"]) == (status, err, tuple(told))
    assert (None, 0, spelled, ID, "nightly") == tuple(told.values())[2:7]
    assert (None, None, True) == (told["deleted_at"], told["cursor"], told["new"])
    assert not zdo("register", "--session-id", ID)[1]["new"]
    assert cursor_of(home) is None


def test_a_registration_is_a_sentence_for_a_person(speak):
    """Registered, already, unregistered, already; and a table of all of them."""
    assert (0, f"registered: {ID}\n", "") == speak("register", "--session-id", ID, "--name", "x y")
    assert f"already registered: {ID}\n" == speak("register", "--session-id", ID)[1]
    speak("register", "--session-id", "cron")
    speak("ack", "--session-id", "cron", "--cursor", "4")
    assert f"unregistered: {ID}\n" == speak("unregister", "--session-id", ID)[1]
    again = speak("unregister", "--session-id", ID)
    assert (0, "") == (again[0], again[2])
    assert again[1].startswith("already unregistered at 2")
    one, two = speak("senders")[1].splitlines()
    assert one.startswith(f"{ID}  x y  has read nothing yet  unregistered 2")
    assert "cron  -  has read up to 4" == two


@pytest.mark.parametrize(
    "variable", ["ZDO_SESSION_ID", "AGENT_EVENT_BUS_SESSION_ID", "CLAUDE_CODE_SESSION_ID"]
)
@pytest.mark.parametrize("words", [(), ("--session-id", "")])
def test_who_registers_says_which_session(zdo, monkeypatch, variable, words):
    """A02: no variable is ever taken for it."""
    monkeypatch.setenv(variable, ID)

    refused(zdo("register", *words), "usage", 64, "session_missing")
    assert [] == zdo("senders")[1]["senders"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--session-id", "anonymous"), "a session id has 1 to 200 printable bytes"),
        (("--session-id", "a\nb"), "a session id has"),
        (("--session-id", "x" * 201), "a session id has"),
        (("--session-id", ID, "--name", ""), "a name has 1 to 200 printable bytes"),
        (("--session-id", ID, "--name", "a\x1bb"), "a name has"),
        (("--session-id", ID, "--name", "\udc80"), "a name has"),
    ],
)
def test_what_no_session_can_be_is_not_registered(zdo, words, why):
    """It could not be shown, or not be found again."""
    found = zdo("register", *words)

    refused(found, "usage", 64, "session_invalid")
    assert found[1]["reason"].startswith(why)
    assert [] == zdo("senders")[1]["senders"]


def test_all_senders_are_listed(zdo):
    """The deleted ones too, each with its cursor."""
    zdo("register", "--session-id", ID)
    zdo("register", "--session-id", "cron")
    zdo("ack", "--session-id", "cron", "--cursor", "4")
    zdo("unregister", "--session-id", ID)

    status, told, _ = zdo("senders")

    assert (0, READER_FIELDS["senders"]) == (status, tuple(told))
    assert all(SENDER_FIELDS == tuple(each) for each in told["senders"])
    assert [(ID, None, True), ("cron", 4, False)] == [
        (each["session_id"], each["cursor"], each["deleted_at"] is not None)
        for each in told["senders"]
    ]


@pytest.mark.parametrize(
    "command", [("receipts", "--resume"), ("ack", "--cursor", "x"), ("unregister",)]
)
@pytest.mark.parametrize("who", [{}, {"ZDO_SESSION_ID": "anonymous"}])
def test_without_a_session_there_is_no_cursor(zdo, monkeypatch, command, who):
    """64: nobody was named, and anonymous is nobody."""
    for name, value in who.items():
        monkeypatch.setenv(name, value)

    refused(zdo(*command), "usage", 64, "session_missing")


@pytest.mark.parametrize(
    "command", [("receipts", "--resume"), ("ack", "--cursor", "x"), ("unregister",)]
)
@pytest.mark.parametrize("session", [ID, "a\nb", "x" * 300])
def test_an_unknown_session_is_told_so_and_has_no_cursor(zdo, command, session):
    """Before its cursor is judged."""
    found = zdo(*command, "--session-id", session)

    refused(found, "target-unknown", 67, "session_unknown", session_id=session)


def test_a_refusal_is_one_sentence_for_a_person(speak):
    """On stderr, with what to do; stdout has nothing."""
    status, out, err = speak("ack", "--cursor", "1", "--session-id", ID)

    assert (67, "") == (status, out)
    advice = "zdo register --session-id ID makes it known, zdo senders lists them"
    assert f"zdo: target-unknown: session {ID} is not registered; {advice}\n" == err


@pytest.mark.parametrize(
    "command",
    [
        ("receipts",),
        ("receipts", "--resume"),
        ("receipts", "--cursor", "x"),
        ("ack", "--cursor", "x"),
    ],
)
def test_a_deleted_session_reads_no_more(zdo, monkeypatch, command):
    """A08: with the moment and a way back, and without a cursor; named or ambient."""
    zdo("register", "--session-id", ID)
    zdo("unregister", "--session-id", ID)
    (gone,) = zdo("senders")[1]["senders"]
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", ID.upper())

    found = zdo(*command)

    hint = "zdo register --session-id ID takes it back, with its cursor"
    facts = {"session_id": ID, "deleted_at": gone["deleted_at"], "hint": hint}
    refused(found, "target-unknown", 67, "session_deleted", **facts)


def test_a_second_unregister_says_already(zdo):
    """A08: 0, and the moment is still the first one's."""
    zdo("register", "--session-id", ID)

    status, told, err = zdo("unregister", "--session-id", ID)
    again = zdo("unregister", "--session-id", ID)

    assert (0, "", READER_FIELDS["unregister"], False) == (
        status,
        err,
        tuple(told),
        told["already"],
    )
    assert (0, told | {"already": True}, "") == again


def test_a_fresh_reader_begins_at_the_tip(home, zdo):
    """What was before it is not its own; the next entry is."""
    zdo("register", "--session-id", ID)

    status, told, _ = zdo("receipts", "--resume", "--session-id", ID)

    assert (0, [], 5, False) == (status, ids(told), told["next_cursor"], told["has_more"])
    assert 5 == cursor_of(home)
    home.queued(key_of(6))
    assert [6] == ids(zdo("receipts", "--resume", "--session-id", ID)[1])


def test_a_fresh_reader_may_begin_at_the_start(home, zdo):
    """Once; later it goes on like any other."""
    zdo("register", "--session-id", ID)
    words = ("receipts", "--resume", "--from-start", "--limit", "2", "--session-id", ID)

    assert [[1, 2], [3, 4], [5], []] == [ids(zdo(*words)[1]) for _ in range(4)]
    assert 5 == cursor_of(home)


@pytest.mark.parametrize(
    ("words", "stands"),
    [
        ((), 3),
        (("--order", "desc"), 3),
        (("--level", "actionable"), 3),
        (("--peek",), 1),
        (("--target", "fable"), 1),
        (("--class", "queued"), 1),
        (("--correlation", key_of(2)), 1),
        (("--level", "actionable", "--target", "fable"), 1),
    ],
)
def test_a_cursor_moves_over_what_was_read_whole(home, zdo, words, stands):
    """A06: a level filter is a choice, any other a look."""
    zdo("register", "--session-id", ID)
    zdo("ack", "--cursor", "1", "--session-id", ID)

    told = zdo("receipts", "--resume", "--limit", "2", "--session-id", ID, *words)[1]

    assert (3, True, stands) == (told["next_cursor"], told["has_more"], cursor_of(home))


def test_a_plain_read_moves_nothing(home, zdo):
    """Also when a registered session asks."""
    zdo("register", "--session-id", ID)
    for words in ((), ("--cursor", "2"), ("--peek",)):
        zdo("receipts", "--session-id", ID, *words)

    assert cursor_of(home) is None


@pytest.mark.parametrize(
    ("cursor", "error", "facts"),
    [
        ("x", "cursor_not_a_number", {}),
        ("-1", "cursor_negative", {}),
        ("6", "cursor_ahead", {"tip": 5}),
        ("1", "cursor_behind", {}),
    ],
)
def test_an_ack_that_is_no_place_carries_where_the_reader_stands(home, zdo, cursor, error, facts):
    """A05: and leaves it there."""
    zdo("register", "--session-id", ID)
    zdo("ack", "--cursor", "2", "--session-id", ID)

    refused(
        zdo("ack", "--cursor", cursor, "--session-id", ID), "usage", 64, error, cursor=2, **facts
    )
    assert 2 == cursor_of(home)


@pytest.mark.parametrize("cursor", ["x", "-1", "6"])
@pytest.mark.parametrize("command", ["ack", "receipts"])
def test_a_fresh_readers_cursor_is_null(zdo, command, cursor):
    """It has none, and says so."""
    zdo("register", "--session-id", ID)

    told = zdo(command, "--cursor", cursor, "--session-id", ID)[1]

    assert (64, None) == (told["exit"], told["cursor"])


def test_an_ack_is_kept_canonically(home, zdo):
    """A05: a sign and zeros are no part of it."""
    zdo("register", "--session-id", ID)

    status, told, err = zdo("ack", "--cursor", "+04", "--session-id", ID.upper())

    assert (0, "", READER_FIELDS["ack"]) == (status, err, tuple(told))
    assert (ID, 4, None, 5) == tuple(told.values())[5:]
    assert 4 == cursor_of(home)
    told = zdo("ack", "--cursor", "2", "--allow-rewind", "--session-id", ID)[1]
    assert (2, 4) == (told["cursor"], told["previous"])


def test_an_ack_is_a_sentence_for_a_person(speak):
    """Up to where, of how many."""
    speak("register", "--session-id", ID)

    assert (0, f"{ID} has read up to 4 of 5\n", "") == speak(
        "ack", "--cursor", "4", "--session-id", ID
    )


@pytest.mark.parametrize(("stored", "shown"), [(LOST_CURSOR, -2), ((1 << 48) + 6, 6)])
def test_a_stored_cursor_that_is_no_place_is_refused_and_left(home, zdo, stored, shown):
    """A06: never reset to the start; an ack mends it."""
    zdo("register", "--session-id", ID)
    home.alter("UPDATE reader SET cursor = ?", stored)

    for words in ((), ("--from-start",), ("--peek",)):
        found = zdo("receipts", "--resume", "--session-id", ID, *words)
        refused(found, "usage", 64, "cursor_invalid", cursor=shown, tip=5)
    assert shown == cursor_of(home)
    zdo("ack", "--cursor", "3", "--allow-rewind", "--session-id", ID)
    assert [4, 5] == ids(zdo("receipts", "--resume", "--session-id", ID)[1])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--resume", "--cursor", "1"), "goes without --cursor"),
        (("--from-start",), "for the first --resume"),
        (("--order", "up"), "--order knows only asc, desc"),
        (("--level", "high"), "--level knows only lifecycle, info, actionable"),
        (("--class", "bad"), "--class takes a class"),
        (("--limit", "0"), "--limit"),
        (("--limit", "1001"), "--limit"),
    ],
)
def test_words_that_mean_nothing_are_refused(words, why):
    """Before anything is opened."""
    with pytest.raises(Usage, match=why):
        app.run(["receipts", *words])


class Gone(io.StringIO):
    """A stdout whose reader went away."""

    encoding = "utf-8"

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, _):
        """Fail."""
        raise self.error


@pytest.mark.parametrize(
    ("error", "status"), [(BrokenPipeError(), 0), (OSError(28, "No space left on device"), 74)]
)
def test_a_page_that_nobody_got_comes_again(home, zdo, monkeypatch, error, status):
    """The cursor moves after the page was said, and only then."""
    zdo("register", "--session-id", ID)
    zdo("ack", "--cursor", "1", "--session-id", ID)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", Gone(error))
        assert status == reading.receipts(reading.Asked(session_id=ID, resume=True))
        sys.stdout.close()

    assert 1 == cursor_of(home)


def test_a_page_that_ctrl_c_cut_off_comes_again(home, zdo, monkeypatch, capsys):
    """130 and one line on stderr; a second object would be none."""
    zdo("register", "--session-id", ID)
    zdo("ack", "--cursor", "1", "--session-id", ID)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", Gone(KeyboardInterrupt()))
        asked_for = reading.Asked(session_id=ID, resume=True, as_object=True)
        assert 130 == reading.receipts(asked_for)

    told = "zdo: interrupted: stopped by Ctrl-C; the same page comes again\n"
    assert ("", told) == capsys.readouterr()
    assert 1 == cursor_of(home)


def test_a_cursor_that_cannot_be_moved_is_told_behind_the_page(home, zdo, capsys, monkeypatch):
    """One object, and a status that says that the page comes again."""
    zdo("register", "--session-id", ID)
    zdo("ack", "--cursor", "1", "--session-id", ID)
    asked_for = reading.Asked(session_id=ID, resume=True, as_object=True)
    lines = reading._page_lines

    def meanwhile(*how):
        # Between the page and its cursor, fsck replaces the file.
        os.rename(f"{home.state}/zdo.db", f"{home.state}/old.db")
        with contextlib.closing(sqlite3.connect(f"{home.state}/zdo.db")) as link:
            link.execute("CREATE TABLE other(x)")
        return lines(*how)

    monkeypatch.setattr(reading, "_page_lines", meanwhile)

    status = reading.receipts(asked_for)

    said = capsys.readouterr()
    assert (73, [2, 3, 4, 5]) == (status, ids(json.loads(said.out)))
    assert said.err.startswith("zdo: spool-unwritable: ")
    assert said.err.endswith(
        "was replaced meanwhile; repeat the command; the same page comes again\n"
    )


def test_a_state_folder_that_cannot_be_used_is_a_refusal_like_any_other(
    tmp_path, monkeypatch, capsys
):
    """With a class and without a word about cursors."""
    (tmp_path / "other").write_bytes(b"")
    monkeypatch.setenv("ZDO_STATE_DIR", f"{tmp_path}/other")

    status = app.run(["receipts", "--json"])

    told = json.loads(capsys.readouterr().out)
    assert (73, "spool-unwritable", None) == (status, told["class"], told["error"])
    assert (*REFUSED_READER[0], *REFUSED_READER[1]) == tuple(told)


def test_an_empty_journal_is_an_empty_page(tmp_path, monkeypatch, capsys):
    """Nothing happened yet, and a first resume begins at 0."""
    monkeypatch.setenv("ZDO_STATE_DIR", f"{tmp_path}/other")
    found = []
    for words in (
        ("receipts",),
        ("register", "--session-id", ID),
        ("receipts", "--resume", "--session-id", ID),
        ("ack", "--cursor", "0", "--session-id", ID),
    ):
        assert 0 == app.run([*words, "--json"])
        found.append(json.loads(capsys.readouterr().out))

    assert ([], None, False) == tuple(found[0].values())[4:]
    assert ([], 0, False) == tuple(found[2].values())[4:]
    assert (0, 0, 0) == tuple(found[3][name] for name in ("cursor", "previous", "tip"))
