"""`zdo spool …`, `zdo verify --open`, `zdo fsck`: dead letters are seen, faults are sentences."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from dispatch import spool
from dispatch.kept import FIRST
from dispatch.rig.rig import P
from dispatch.seal import digest_of
from dispatch.spool import Draft
from registry.ids import new_uuid
from tests.acceptance.saying import (
    CONFIG,
    GATED,
    OTHER,
    SPOOL_FIELDS,
    at_gate,
    complained,
    open_gate,
    passed,
    queued,
    refused,
    shell_claude,
    story,
    wait_for,
)
from tests.acceptance.saying import spool as listed
from tests.fakes.queues import DAY_S, Q, Queue

TWO = f'{CONFIG}\n[targets.other]\nsession = "{OTHER}"\ncarrier_session = "{Q}"\n'
HEARS = CONFIG.replace("settle_s = 0.05", "settle_s = 0.5")


# -- every state against every command


def in_state(rig, state):
    """The delivery id of a line to fable that came into *state* as lines do."""
    door = rig.door()
    if state == "queued":
        return queued(rig, "fable", "one")[0]
    if state == "uncertain":
        door.change(accept="hold")
    if state == "dead":
        door.change(accept="refuse")
    (delivery,) = queued(rig, "fable", "one")
    if state == "claimed":
        shell_claude(rig, GATED)
        rig.started = rig.start("relay")
        at_gate(rig, "before")
    else:
        rig.zdo("relay")
    door.change(accept="surface")
    return delivery


# What each command answers: exit, and the state that the line is in afterwards.
ANSWERS = {
    ("queued", "requeue"): (0, "queued"),
    ("queued", "drop"): (0, None),
    ("claimed", "requeue"): (75, "claimed"),
    ("claimed", "drop"): (75, "claimed"),
    ("uncertain", "requeue"): (3, "uncertain"),
    ("uncertain", "requeue --i-have-looked"): (0, "queued"),
    ("uncertain", "drop"): (0, None),
    ("delivered", "requeue --i-have-looked"): (64, None),
    ("delivered", "drop"): (64, None),
    ("dead", "requeue"): (0, "queued"),
    ("dead", "drop"): (0, None),
}
CLASS = {3: "unknown", 64: "usage", 75: "carrier-busy"}


@pytest.mark.parametrize(("state", "command"), ANSWERS)
def test_every_state_has_its_answer(own_rig, state, command):
    """In both forms; what is refused changes nothing."""
    own_rig.configure(HEARS)
    status, afterwards = ANSWERS[state, command]
    delivery = in_state(own_rig, state)

    said = own_rig.zdo("spool", *command.split(), "--json", delivery)

    assert status == said.exit, said
    told = said.json
    assert (1, "spool", status) == (told["v"], told["command"], told["exit"])
    if status:
        complained(said, CLASS[status], status)
    else:
        assert (SPOOL_FIELDS, delivery) == (tuple(told["line"]), told["line"]["delivery_id"])
    assert [afterwards] * bool(afterwards) == [line["state"] for line in listed(own_rig)]
    if state == "claimed":
        for gate in ("before", "after"):
            open_gate(own_rig, gate)
        own_rig.started.communicate(timeout=30)


@pytest.mark.parametrize("word", [OTHER, "nope", "../../x", "", "-rf"])
@pytest.mark.parametrize("command", ["requeue", "drop", "show"])
def test_an_unknown_delivery_is_67(own_rig, command, word):
    """Also before there is any queue, and whatever somebody typed."""
    said = own_rig.zdo("spool", command, "--json", "--", word)

    complained(said, "target-unknown", 67)


def test_who_has_not_looked_is_told_what_to_do(own_rig):
    """The sentence is a command that can be copied."""
    own_rig.configure(HEARS)
    delivery = in_state(own_rig, "uncertain")

    said = own_rig.zdo("spool", "requeue", delivery)

    assert f"zdo spool requeue {delivery} --i-have-looked" in said.err
    again = own_rig.zdo("spool", "requeue", delivery, "--i-have-looked")
    assert (0, f"queued again: {delivery} to fable\n") == (again.exit, again.out)
    own_rig.let_time_pass()
    passed(own_rig.zdo("relay", "--json"), delivered=1)
    kinds = [event["kind"] for event in story(own_rig, delivery)]
    assert ["queued", "claimed", "judged", "requeued", "claimed", "judged"] == kinds[:6]


def test_a_doubt_holds_its_queue_until_a_person_decides(own_rig):
    """`zdo spool list` names it before those that wait behind it; given up, they go."""
    own_rig.configure(HEARS)
    doubt = in_state(own_rig, "uncertain")
    behind = queued(own_rig, "fable", "two", "three")
    passed(own_rig.zdo("relay", "--json"), runs=0, left=2)

    assert [(doubt, None), (behind[0], doubt), (behind[1], doubt)] == [
        (line["delivery_id"], line["held_by"]) for line in listed(own_rig)
    ]
    assert f"behind {doubt[:8]}" in own_rig.zdo("spool", "list").out
    assert f"given up: {doubt} to fable\n" == own_rig.zdo("spool", "drop", doubt).out
    passed(own_rig.zdo("relay", "--json"), delivered=2, left=0)


def test_a_story_on_the_shelf_is_the_story_everywhere(own_rig):
    """`zdo spool show` says what `zdo show` says."""
    delivery = in_state(own_rig, "dead")

    shown = [own_rig.zdo(*words, delivery) for words in (("show",), ("spool", "show"))]
    assert shown[0].out == shown[1].out
    assert " judged door-refused: " in shown[0].out


# -- dead letters (P22)


def test_p22_a_dead_letter_is_never_silent(own_rig):
    """Exit and stderr of its pass, the list, its story; it stays until a person decides."""
    own_rig.door()
    own_rig.install_claude(hook="none", outcome="unknown-postbox")
    (delivery,) = queued(own_rig, "fable", "one")
    tries_spent(own_rig, delivery)

    said = own_rig.zdo("relay", "--json")

    complained(said, "carrier-exit", 76)
    assert delivery in said.err
    passed(said, dead=1, left=0)
    for _ in range(2):
        (line,) = listed(own_rig, "--dead")
        assert (delivery, "dead", "carrier-exit") == (
            line["delivery_id"], line["state"], line["class"],
        )  # fmt: skip
        assert "No conversation found" in line["reason"]
        assert "carrier-exit: " in own_rig.zdo("spool", "list", "--dead").out
        assert "carrier-exit" == story(own_rig, delivery)[-1]["class"]
        passed(own_rig.zdo("relay", "--json"), runs=0, exit=0)
    own_rig.install_claude()
    own_rig.let_time_pass()
    own_rig.zdo("spool", "requeue", delivery)
    passed(own_rig.zdo("relay", "--json"), delivered=1)
    assert [] == listed(own_rig, "--dead")


def tries_spent(rig, delivery):
    """Let *delivery* have one try left."""
    Queue(rig).change("UPDATE line SET tries = ? WHERE key = ?", FIRST + 23, delivery)


def test_p22_each_way_to_die_is_told(own_rig):
    """Refused, expired, given up for its time: exit, one line on stderr, the list."""
    own_rig.configure(TWO.replace("settle_s = 0.05", "settle_s = 0.5"))
    own_rig.door(accept="refuse")
    queued(own_rig, "fable", "refused")
    complained(own_rig.zdo("relay"), "door-refused", 77)
    queued(own_rig, "other", "late")
    own_rig.zdo("relay")
    Queue(own_rig).change("UPDATE pulse SET watched = watched + 432000")
    complained(own_rig.zdo("relay"), "target-not-running", 69)

    assert ["door-refused", "target-not-running"] == [e["class"] for e in listed(own_rig, "--dead")]
    assert "given up after 5 days: " in listed(own_rig, "--dead")[1]["reason"]


# -- verify --open


def test_open_deliveries_are_asked_for_together(own_rig):
    """A line that waits in its target is 0, a held one is 3, and both are told."""
    own_rig.configure(HEARS)
    door = own_rig.door(accept="busy", surface_after=None)
    started = own_rig.zdo("kiss", "--json", "fable", "one").json["delivery_id"]
    said = own_rig.zdo("verify", "--open")
    assert (0, "") == (said.exit, said.err)
    assert f"{started} fable delivered-start, proof enqueued: the target has it waiting" in said.out
    door.change(accept="hold")
    doubt = own_rig.zdo("kiss", "--json", "fable", "two").json["delivery_id"]

    said = own_rig.zdo("verify", "--open", "--json")

    assert (3, [started, doubt]) == (said.exit, [e["delivery_id"] for e in said.json["results"]])
    assert ["verify"] * 2 == [each["command"] for each in said.json["results"]]


@pytest.mark.parametrize("then", ["denied", "expired", "delivered"])
def test_a_held_line_is_found_out_later(own_rig, then):
    """Approved, denied or expired after the attempt was over: the next look says it."""
    own_rig.door(accept="hold", hold_then=then, hold_after=1.0)
    (delivery,) = queued(own_rig, "fable", "one")
    own_rig.zdo("relay")
    expected = {"denied": 77, "expired": 69, "delivered": 0}[then]

    def found():
        said = own_rig.zdo("verify", "--json", delivery)
        return said.json["class"] != "door-held" and said

    wait_for(found, then)
    assert expected == own_rig.zdo("verify", "--json", delivery).exit


# -- faults


def test_a_full_disk_keeps_what_was_acked(own_rig):
    """73 for what does not fit and for the relay, which starts nothing; with room, all goes."""
    disk = f"{own_rig.root}/disk"
    os.mkdir(disk)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", disk],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        own_rig.state = own_rig.env["ZDO_STATE_DIR"] = f"{disk}/state"
        door = own_rig.door()
        acked, line = [], "x" * 60_000
        while (said := own_rig.zdo("kiss", "--queue", "--json", "fable", f"{len(acked)} {line}")
               ).exit == 0:  # fmt: skip
            acked.append(said.json["delivery_id"])
        refused(own_rig, said, "spool-unwritable", 73, known=False)
        complained(own_rig.zdo("relay"), "spool-unwritable", 73)
        assert ([], acked) == (door.calls(), [each["delivery_id"] for each in listed(own_rig)])
        subprocess.run(["mount", "-o", "remount,size=9m", disk], check=True)
        passed(own_rig.zdo("relay", "--json"), delivered=len(acked), left=0)
        assert [f"{number} {line}" for number in range(len(acked))] == door.lines()
    finally:
        own_rig.close_doors()
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_disk_that_takes_no_byte_is_73_for_everybody(own_rig):
    """Queue, relay, drop: each says it, and the line that was kept is still there."""
    own_rig.door()
    (delivery,) = queued(own_rig, "fable", "one")

    def no_space():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    for words in (
        ("kiss", "--queue", "fable", "two"),
        ("relay",),
        ("spool", "drop", delivery),
    ):
        said = own_rig.zdo(*words, preexec_fn=no_space)
        complained(said, "spool-unwritable", 73)
    assert [(delivery, "queued")] == [(e["delivery_id"], e["state"]) for e in listed(own_rig)]
    passed(own_rig.zdo("relay", "--json"), delivered=1)


def as_others_are():
    """Without root's right to overlook the mode of a file; for a child's process."""
    libc = ctypes.CDLL(None, use_errno=True)
    for right in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP


def test_a_read_only_state_folder_is_73_for_everybody(own_rig):
    """Nothing is accepted, nothing is started; with the right back, all goes on."""
    door = own_rig.door()
    (delivery,) = queued(own_rig, "fable", "one")
    kept = [own_rig.state, *map(str, Path(own_rig.state).iterdir())]
    modes = {path: os.stat(path).st_mode for path in kept}
    for path in reversed(kept):
        os.chmod(path, 0o500 if os.path.isdir(path) else 0o400)

    for words in (("kiss", "--queue", "fable", "two"), ("relay",), ("spool", "drop", delivery)):
        complained(own_rig.zdo(*words, preexec_fn=as_others_are), "spool-unwritable", 73)
    assert [] == door.calls()
    for path, mode in modes.items():
        os.chmod(path, mode)

    passed(own_rig.zdo("relay", "--json"), delivered=1, left=0)


SPOILT = {
    "symlink": lambda path: os.symlink(Path(path + "-real").mkdir() or path + "-real", path),
    "file": lambda path: Path(path).touch(),
    "foreign": lambda path: (os.mkdir(path), os.chown(path, 12345, 12345)),
}
EVERYBODY = (
    ("kiss", "--queue", "fable", "x"),
    ("relay",),
    ("relay", "--follow"),
    ("spool", "list"),
    ("spool", "requeue", P),
    ("spool", "drop", P),
    ("verify", "--open"),
)


@pytest.mark.parametrize("how", SPOILT)
def test_a_state_folder_that_cannot_be_trusted_is_73_for_everybody(own_rig, how):
    """A link, a file, another user's folder: named, and left as it was."""
    path = f"{own_rig.root}/odd"
    if how == "foreign" and os.geteuid():
        pytest.skip("only root can give a folder away")
    SPOILT[how](path)

    for words in EVERYBODY:
        said = own_rig.zdo(*words, env={"ZDO_STATE_DIR": path}, timeout=15)
        complained(said, "spool-unwritable", 73)
        assert path in said.err
    assert [] == (os.listdir(path) if how != "file" else [])


def test_a_damaged_database_is_named_kept_and_replaced(own_rig):
    """73 with `zdo fsck` in the sentence; that keeps the file, saves the lines, and all goes on."""
    door = own_rig.door()
    ids = queued(own_rig, "fable", "one", "two")
    path = Path(own_rig.state, "zdo.db")
    whole = path.read_bytes()
    # The root of the index over live lines: every command meets it.
    with contextlib.closing(sqlite3.connect(path)) as link:
        asked = "SELECT rootpage FROM sqlite_schema WHERE name = 'line_live'"
        (page,) = link.execute(asked).fetchone()
    torn = whole[: (page - 1) * 4096] + b"\xff" * 4096 + whole[page * 4096 :]
    path.write_bytes(torn)

    for words in (("relay",), ("kiss", "--queue", "fable", "three")):
        said = own_rig.zdo(*words)
        complained(said, "spool-unwritable", 73)
        assert "zdo fsck keeps the file and saves what is whole" in said.err
    said = own_rig.zdo("fsck", "--json")

    complained(said, "spool-unwritable", 73)
    told = said.json
    assert ("damaged", 2, 0) == (told["state"], told["saved"]["lines"], told["saved"]["lost_lines"])
    assert torn == Path(told["saved"]["moved_to"]).read_bytes()
    healthy = own_rig.zdo("fsck")
    assert (0, "") == (healthy.exit, healthy.err)
    assert ids == [line["delivery_id"] for line in listed(own_rig)]
    passed(own_rig.zdo("relay", "--json"), delivered=2, left=0)
    assert ["one", "two"] == door.lines()


def test_a_database_that_is_none_is_told(own_rig):
    """Text where the database should be: every command names fsck, which keeps it elsewhere."""
    os.mkdir(own_rig.state, 0o700)
    prose = b"no database at all " * 500
    Path(own_rig.state, "zdo.db").write_bytes(prose)
    for words in EVERYBODY:
        said = own_rig.zdo(*words, timeout=15)
        complained(said, "spool-unwritable", 73)
        assert "zdo fsck" in said.err

    told = own_rig.zdo("fsck", "--json").json
    assert (73, prose) == (told["exit"], Path(told["saved"]["moved_to"]).read_bytes())
    passed(own_rig.zdo("relay", "--json"), exit=0)


def test_a_newer_zdos_database_is_refused_by_everybody(own_rig):
    """And not changed, not even by fsck."""
    queued(own_rig, "fable", "one")
    change = Queue(own_rig).change
    change("CREATE TABLE later(x)")
    change("PRAGMA user_version=99")
    before = Path(own_rig.state, "zdo.db").read_bytes()

    for words in (*EVERYBODY, ("fsck",)):
        said = own_rig.zdo(*words, timeout=15)
        complained(said, "spool-unwritable", 73)
        assert "newer zdo" in said.err
    assert before == Path(own_rig.state, "zdo.db").read_bytes()


def test_a_clock_that_is_set_back_by_a_year_delays_nothing(own_rig):
    """What was to wait for a moment in that year is due; nothing is older or newer for it."""
    queue = Queue(own_rig)
    own_rig.door()
    own_rig.install_claude(hook="none", outcome="empty-failed")
    queue.later(365 * DAY_S)
    ids = queue.put("one", "two")
    assert 2 == queue.relay().deferred
    own_rig.install_claude()
    queue.later(-365 * DAY_S)

    tally = queue.relay()

    assert (2, ids) == (tally.delivered, [each.delivery_id for each in tally.results])


def test_ten_thousand_lines_to_a_dead_target_delay_no_other(own_rig):
    """A pass over them and one line for somebody else costs little more than that line alone."""
    own_rig.configure(TWO)
    other = own_rig.door(name="other", session_id=OTHER)
    own_rig.zdo("relay")
    alone = time_to_deliver(own_rig, "alone")
    pile(own_rig, "fable", 10_000)
    own_rig.zdo("relay")

    beside = time_to_deliver(own_rig, "beside")

    assert ["alone", "beside"] == other.lines()
    assert beside < 3 * alone + 0.5, (beside, alone)
    assert 10_000 == own_rig.zdo("relay", "--json").json["left"]
    began = time.monotonic()
    assert 10_000 == len(listed(own_rig, "--target", "fable"))
    assert time.monotonic() - began < 10


def time_to_deliver(rig, line):
    """How long a pass takes that delivers one *line* to the other target."""
    queued(rig, "other", line)
    began = time.monotonic()
    passed(rig.zdo("relay", "--json"), delivered=1)
    return time.monotonic() - began


def pile(rig, target, count):
    """Queue *count* lines to *target* in one commit."""
    queue = Queue(rig)
    now = queue.clock.now()
    with queue.database() as database, database.writing() as link:
        for number in range(count):
            body = f"line {number}".encode()
            draft = Draft(new_uuid(), digest_of(body), body, target, new_uuid(), P)
            assert spool.enqueue(link, draft, now, 1.5) is None


def test_the_commands_say_nothing_of_a_line(own_rig):
    """K13 for the queue: its text is in the database and at the door, and in no word of ours."""
    own_rig.door(accept="refuse")
    (delivery,) = queued(own_rig, "fable", "CANARY one")
    commands = (
        ("relay", "--json"), ("spool", "list", "--json"), ("spool", "show", "--json", delivery),
        ("verify", "--open"), ("spool", "requeue", "--json", delivery), ("fsck", "--json"),
        ("spool", "drop", delivery), ("unit", "cron"),
    )  # fmt: skip
    said = [own_rig.zdo(*words) for words in commands]

    assert not [each for each in said if "CANARY" in each.out + each.err]
    assert json.loads(said[1].out)["lines"]
