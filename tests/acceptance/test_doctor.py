"""Broken surroundings: each is found by its code, mended as it says, and found healed."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from dispatch.health import LOOKS
from dispatch.rig.rig import CONFIG, P
from dispatch.rig.script import T
from dispatch.rig.transcript import Transcript
from tests.acceptance.saying import queued
from tests.fakes.inside import RIGS

DAY = 86_400
NOBODY = "a0000014-0000-4000-8000-000000000014"
LATER = "UPDATE event SET at = at + 900000"
EARLIER = "UPDATE event SET at = at - 900000"


@pytest.fixture
def rig():
    """A rig in which all is well: a session, a postbox, a delivery."""
    with RIGS[0]() as made:
        made.door()
        made.postbox()
        assert 0 == made.zdo("kiss", "fable", "hello").exit
        yield made


def ask(rig, before="", env=None):
    """What the doctor says of each item, in a shell that has run *before* it."""
    script = f"{before}\nzdo doctor --json"
    ended = subprocess.run(
        ["/bin/sh", "-c", script],
        env=rig.env | (env or {}),
        cwd=rig.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    told = json.loads(ended.stdout.splitlines()[-1])
    assert ended.returncode == (78 if any(i["ok"] is False for i in told["items"]) else 0)
    return {item["code"]: item for item in told["items"]}


def lost(path):
    """*path* is gone."""
    return lambda rig: os.rename(path(rig), path(rig) + ".gone")


def put(path, text, mode=0o600):
    """*text* stands at *path*."""

    def make(rig):
        file = Path(path(rig))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)

    return make


def mode(path, bits):
    """*path* has these permissions."""
    return lambda rig: os.chmod(path(rig), bits)


def a_folder_at(path):
    """A folder stands where a file should."""

    def make(rig):
        if os.path.isfile(path(rig)):
            os.unlink(path(rig))
        os.makedirs(path(rig))

    return make


def in_order(*steps):
    """One after the other."""

    def make(rig):
        for step in steps:
            step(rig)

    return make


def config_file(rig):
    """Where the configuration is."""
    return rig.config_file


def state(rig):
    """The state folder."""
    return rig.state


def database(rig):
    """The file of spool and journal."""
    return f"{rig.state}/zdo.db"


def sessions(rig):
    """The folder of rows."""
    return f"{rig.claude_dir}/sessions"


def settings(rig):
    """The user's settings of Claude Code."""
    return f"{rig.claude_dir}/settings.json"


def ledger(rig):
    """The ticket events."""
    return f"{rig.claude_dir}/tickets/events.jsonl"


def unit(rig):
    """The timer of systemd."""
    return f"{rig.home}/.config/systemd/user/zdo-relay.service"


def program(rig):
    """The claude."""
    return rig.claude


def linked_state(rig):
    """The state folder is a link to where it is kept."""
    os.rename(rig.state, f"{rig.root}/kept")
    os.symlink(f"{rig.root}/kept", rig.state)
    # A folder that was made elsewhere is another one to claude.
    made = Transcript(rig.claude_dir, P, os.path.realpath(f"{rig.root}/kept/postbox"))
    made.block("zdo postbox", "made")


def linked_part(rig):
    """A part of the state folder leads out of it."""
    os.rename(f"{rig.state}/attempts", f"{rig.root}/attempts")
    os.symlink(f"{rig.root}/attempts", f"{rig.state}/attempts")


def garbage(rig):
    """The database is none."""
    Path(database(rig)).write_bytes(os.urandom(8192))


def changed(statement):
    """The database as *statement* leaves it."""

    def make(rig):
        link = sqlite3.connect(database(rig))
        link.execute(statement)
        link.commit()
        link.close()

    return make


def cold(rig):
    """Nobody has touched the postbox for a month."""
    at = time.time() - 29 * DAY
    os.utime(rig.postbox(), (at, at))


def misplaced(rig):
    """The postbox was made in another folder."""
    os.unlink(rig.postbox())
    Transcript(rig.claude_dir, P, "/somewhere/else").block("zdo postbox", "made")


def waiting(rig):
    """A line has waited for days, and no relay came."""
    queued(rig, "fable", "are you there")
    changed("UPDATE line SET created_at = created_at - 900000")(rig)


def shut(rig):
    """The only session has no door any more."""
    rig.close_doors()
    rig.registry.add(damage="refused", sessionId=T)


def back(path):
    """What was lost is there again."""

    def make(rig):
        if os.path.isfile(path(rig)):
            os.unlink(path(rig))
        os.rename(path(rig) + ".gone", path(rig))

    return make


def claude(**behaviour):
    """The claude is another one."""
    return lambda rig: rig.install_claude(**behaviour)


def a_file_in_the_place_of_locks(rig):
    """A part of the state folder is no folder."""
    os.rename(f"{rig.state}/locks", f"{rig.root}/locks")
    Path(rig.state, "locks").touch()


def changed_unit(rig):
    """The unit that is installed is not what would be written now."""
    installed(rig)
    with open(unit(rig), "a", encoding="utf-8") as file:
        file.write("# changed\n")


def half_a_unit(rig):
    """A part of it is gone."""
    installed(rig)
    os.unlink(unit(rig))


def a_foreign_file(rig):
    """Somebody keeps something in the state folder, which is open to others."""
    Path(rig.state, "mine").touch()
    Path(rig.state).chmod(0o750)


def own_postbox(rig):
    """A target has a postbox of its own that does not exist."""
    text = f'[targets.fable]\nsession = "{T}"\ncarrier_session = "{NOBODY}"\n'
    rig.configure(text)


def installed(rig):
    """The relay's units are in their places."""
    assert 0 == rig.zdo("unit", "systemd", "--install").exit


# What is broken: its code, how, in which environment; what heals it where no command does.
OTHER_CONFIG = put(config_file, CONFIG)
ROWS_ARE_A_FILE = in_order(lost(sessions), put(sessions, "x"))
NO_LINE_IN = put(settings, '{"crossSessionInbound": "refuse"}')
EVERY_LINE_IN = put(settings, '{"crossSessionInbound": "accept"}')
NO_POSTBOX = put(config_file, '[station]\ncarrier_session = ""\n')
BY_THE_FIX = None

BROKEN = {
    "no TOML": ("config", put(config_file, "[station\n"), {}, OTHER_CONFIG),
    "an unknown key": ("config", put(config_file, "[station]\nnme = 'x'\n"), {}, OTHER_CONFIG),
    "no plain file": (
        "config",
        a_folder_at(config_file),
        {},
        in_order(lambda rig: os.rmdir(rig.config_file), OTHER_CONFIG),
    ),
    "others may write it": ("config", mode(config_file, 0o666), {}, BY_THE_FIX),
    "Claude Code never ran": ("registry", lost(sessions), {}, back(sessions)),
    "the rows are a file": ("registry", ROWS_ARE_A_FILE, {}, back(sessions)),
    "another folder": ("registry", None, {"CLAUDE_CONFIG_DIR": "/nowhere"}, BY_THE_FIX),
    "open to others": ("state-folder", a_foreign_file, {}, BY_THE_FIX),
    "a link": ("state-folder", linked_state, {}, BY_THE_FIX),
    "a part is a link": ("state-folder", linked_part, {}, BY_THE_FIX),
    "a part is a file": ("state-folder", a_file_in_the_place_of_locks, {}, BY_THE_FIX),
    "the database is damaged": ("database", garbage, {}, BY_THE_FIX),
    "the database is a folder": ("database", a_folder_at(database), {}, BY_THE_FIX),
    "no claude": ("claude-binary", lost(program), {}, back(program)),
    "claude is no program": ("claude-binary", mode(program, 0o600), {}, BY_THE_FIX),
    "another claude": ("claude-binary", None, {"ZDO_CLAUDE_BIN": "/nowhere/c"}, BY_THE_FIX),
    "a new version": ("claude-version", claude(version="2.9.0"), {}, claude()),
    "an old version": ("claude-version", claude(version="2.1.100"), {}, claude()),
    "no postbox": ("postbox", lambda rig: os.unlink(rig.postbox()), {}, BY_THE_FIX),
    "none is configured": ("postbox", NO_POSTBOX, {}, BY_THE_FIX),
    "somebody works in it": ("postbox", lambda r: r.door(session_id=P, name="x"), {}, BY_THE_FIX),
    "made elsewhere": ("postbox", misplaced, {}, BY_THE_FIX),
    "cold": ("postbox", cold, {}, BY_THE_FIX),
    "a target's own is missing": ("postbox", own_postbox, {}, BY_THE_FIX),
    "every line is refused": ("inbound", NO_LINE_IN, {}, EVERY_LINE_IN),
    "the ledger is a folder": ("ledger", a_folder_at(ledger), {}, BY_THE_FIX),
    "no door is open": ("messaging-door", shut, {}, lambda rig: rig.door()),
    "no relay comes": ("relay-last-pass", waiting, {}, BY_THE_FIX),
    "the unit is another one": ("relay-starter", changed_unit, {}, BY_THE_FIX),
    "half a unit": ("relay-starter", half_a_unit, {}, BY_THE_FIX),
    "the clock was set back": ("clock", changed(LATER), {}, changed(EARLIER)),
    "under a carrier": ("nested", None, {"ZDO_CARRIER_DOOR_TARGET": "x"}, BY_THE_FIX),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_found_and_healed(rig, name):
    """By its code, and no other is accused; after the fix nothing is ill any more."""
    code, breaks, env, by_hand = BROKEN[name]
    healthy = ask(rig)
    assert not [item for item in healthy.values() if item["ok"] is False], healthy
    if breaks is not None:
        breaks(rig)

    found = ask(rig, env=env)

    ill = {each: item for each, item in found.items() if item["ok"] is False}
    assert {code} == set(ill), ill
    fix = ill[code]["fix"]
    if by_hand is not None:
        by_hand(rig)
    after = ask(rig, "" if by_hand else fix, env=env)
    assert not [item for item in after.values() if item["ok"] is False], (fix, after)


def test_a_shell_with_too_few_files(rig):
    """The fix is one of the same shell."""
    script = "ulimit -n 32"
    fix = ask(rig, script)["limits"]["fix"]

    assert "ulimit -n 64" == fix
    # A soft limit alone may be raised again.
    assert ask(rig, f"ulimit -S -n 32; {fix}")["limits"]["ok"] is True


def test_there_are_enough_of_them():
    """Every code that can be ill is made ill by one of them, but for what no test can break."""
    codes = {code for code, *_ in BROKEN.values()} | {"limits"}

    assert len(BROKEN) >= 25
    rest = {"hooks", "process-sources", "free-space", "cron-environment"}
    assert rest == {look.code for look in LOOKS} - codes
