"""Health and units: `zdo doctor` says what is there now; `zdo unit` says how to start the relay."""

from __future__ import annotations

import configparser
import os
import plistlib
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.saying import complained, delivered, queued, spool

CODES = (
    "config", "registry", "state-folder", "database", "claude-binary", "claude-version", "postbox",
    "hooks", "inbound", "ledger", "process-sources", "messaging-door", "relay-last-pass",
    "relay-starter", "cron-environment", "clock", "limits", "nested", "free-space",
)  # fmt: skip
# As many as the machine has room for; what it says of room is not the rig's.
SECRETS = {
    "ANTHROPIC_API_KEY": "s3cret",
    "CLAUDE_CODE_OAUTH_TOKEN": "s3cret",
    "ZDO_SESSION_ID": "s3cret",
    "GITHUB_TOKEN": "s3cret",
}


def items(rig, *, status=None, **how):
    """What `zdo doctor` says of each item; its *status* is as its items have it."""
    said = rig.zdo("doctor", "--json", **how)
    told = said.json
    assert ("v", "command", "class", "exit", "sender", "items") == tuple(told)
    assert (1, "doctor") == (told["v"], told["command"])
    assert CODES == tuple(item["code"] for item in told["items"])
    ill = [item["code"] for item in told["items"] if item["ok"] is False]
    if ill:
        complained(said, "unhealthy", 78)
        assert f"zdo: unhealthy: {', '.join(ill)}; " in said.err
    else:
        assert (0, "") == (said.exit, said.err)
    assert (("unhealthy", 78) if ill else (None, 0)) == (told["class"], told["exit"])
    assert status in (None, said.exit)
    return {item["code"]: item for item in told["items"]}


def test_a09_a_machine_in_order_is_healthy(own_rig):
    """A session, a delivery, a relay that has passed: nothing is ill, and 0."""
    own_rig.door()
    own_rig.postbox()
    delivered(own_rig.zdo("kiss", "--json", "fable", "one"))
    queued(own_rig, "fable", "two")
    own_rig.zdo("relay")

    found = items(own_rig, status=0)

    unknown = {code for code, item in found.items() if item["ok"] is None}
    assert {"ledger", "relay-starter", "cron-environment"} == unknown
    assert own_rig.claude == found["claude-binary"]["detail"]


def test_a09_what_is_taken_away_is_missed_at_the_next_call(own_rig):
    """Nothing is remembered: the registry, the binary, the door, the configuration in turn."""
    door = own_rig.door()
    own_rig.postbox()
    delivered(own_rig.zdo("kiss", "--json", "fable", "one"))
    assert items(own_rig)["registry"]["ok"] is True
    sessions = f"{own_rig.claude_dir}/sessions"
    os.rename(sessions, f"{sessions}.away")
    found = items(own_rig, status=78)
    assert (False, f"there is no folder {sessions}") == (
        found["registry"]["ok"], found["registry"]["detail"],
    )  # fmt: skip
    os.rename(f"{sessions}.away", sessions)
    assert items(own_rig, status=0)["registry"]["ok"] is True

    os.unlink(own_rig.claude)
    assert items(own_rig)["claude-binary"]["ok"] is False
    own_rig.install_claude()
    assert items(own_rig)["claude-binary"]["ok"] is True

    assert items(own_rig)["messaging-door"]["ok"] is True
    door.__exit__()
    own_rig._doors.clear()
    assert items(own_rig)["messaging-door"]["ok"] is None

    own_rig.configure("[nonsense]\n")
    found = items(own_rig, status=78)
    assert [False, None, None] == [
        found[code]["ok"] for code in ("config", "registry", "claude-binary")
    ]


def test_a09_each_item_has_the_time_of_its_look(own_rig):
    """Two calls have two times, and the second begins after the first."""
    first, second = items(own_rig), items(own_rig)

    last = max(item["checked_at"] for item in first.values())
    assert all(last <= item["checked_at"] for item in second.values())
    assert all(item["checked_at"].endswith("Z") for item in first.values())


def test_a09_what_is_not_there_yet_is_not_known(own_rig):
    """Before the first kiss: null, and nothing is made by asking."""
    own_rig.door()
    own_rig.postbox()

    found = items(own_rig, status=0)

    for code in ("state-folder", "database", "ledger", "relay-last-pass"):
        assert found[code]["ok"] is None, code
    assert not os.path.lexists(own_rig.state)


def test_a09_a_damaged_database_is_ill_until_it_is_mended(own_rig):
    """`zdo fsck` is the fix that is named, and it is one."""
    own_rig.door()
    own_rig.postbox()
    delivered(own_rig.zdo("kiss", "--json", "fable", "one"))
    with open(f"{own_rig.state}/zdo.db", "r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 200)

    found = items(own_rig, status=78)["database"]

    assert (False, "zdo fsck") == (found["ok"], found["fix"])
    own_rig.zdo("fsck")
    assert items(own_rig, status=0)["database"]["ok"] is True


def test_a09_a_person_reads_one_line_an_item(own_rig):
    """With the fix on each that is ill."""
    os.unlink(own_rig.claude)

    said = own_rig.zdo("doctor")

    complained(said, "unhealthy", 78)
    lines = [line for line in said.out.splitlines() if not line.startswith(" ")]
    assert CODES == tuple(line.split()[1] for line in lines)
    (ill,) = [line for line in lines if line.startswith("FAIL  claude-binary")]
    assert "no program 'claude' is found" in ill
    assert "      fix: install claude, or set claude_bin" in said.out.splitlines()


def unit(rig, *words, env=None):
    """What `zdo unit` said, from a program that others can start; it went well."""
    program = rig.program
    ran = subprocess.run(
        [program, "unit", *words], env=rig.env | (env or {}), cwd=rig.home,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (0, "") == (ran.returncode, ran.stderr)
    return ran.stdout


def ini(text):
    """The sections of a systemd file, or of two."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read_string(text)
    return parser


def as_systemd_runs(text):
    """The argv and the environment that systemd makes of the service in *text*."""
    service = ini(text)["Service"]
    env = dict(word.split("=", 1) for word in shlex.split(service["Environment"]))
    argv = shlex.split(service["ExecStart"].removeprefix(":"))
    return argv, {name: value.replace("%%", "%") for name, value in env.items()}


def as_launchd_runs(text):
    """The argv and the environment that launchd makes of the agent in *text*."""
    agent = plistlib.loads(text.encode())
    return agent["ProgramArguments"], agent["EnvironmentVariables"]


READERS = {"systemd": as_systemd_runs, "launchd": as_launchd_runs}


@pytest.mark.parametrize("kind", READERS)
def test_a10_what_a_unit_starts_delivers(own_rig, kind):
    """In an environment that holds nothing else, from another folder, as a scheduler starts it."""
    door = own_rig.door()
    queued(own_rig, "fable", "one", "two")

    argv, env = READERS[kind](unit(own_rig, kind))
    ran = subprocess.run(
        argv, env=env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip

    assert (0, "") == (ran.returncode, ran.stderr)
    assert (["one", "two"], []) == (door.lines(), spool(own_rig))


@pytest.mark.parametrize("kind", ["cron", *READERS])
def test_a10_no_secret_is_in_a_unit(own_rig, kind):
    """Whatever the shell has that prints it."""
    assert "s3cret" not in unit(own_rig, kind, env=SECRETS)
    unit(own_rig, kind, "--install", env=SECRETS)
    for folder, _, names in os.walk(own_rig.home):
        for name in names:
            assert b"s3cret" not in Path(folder, name).read_bytes()


def test_a10_units_throttle_and_log(own_rig):
    """At least ten seconds between two starts; stderr in a file that is appended to."""
    service = ini(unit(own_rig, "systemd"))["Service"]
    agent = plistlib.loads(unit(own_rig, "launchd").encode())

    assert 10 <= int(service["RestartSec"])
    assert 10 <= agent["ThrottleInterval"]
    assert f"append:{own_rig.state}/relay.log" == service["StandardError"]
    assert f"{own_rig.state}/relay.log" == agent["StandardErrorPath"]
    assert ("null", "/dev/null") == (service["StandardOutput"], agent["StandardOutPath"])


def test_a10_what_a_pass_started_outlives_it(own_rig):
    """A carrier under way is finished, whatever the scheduler does with the pass."""
    assert "process" == ini(unit(own_rig, "systemd"))["Service"]["KillMode"]
    assert plistlib.loads(unit(own_rig, "launchd").encode())["AbandonProcessGroup"] is True


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="only systemd knows its units")
def test_a10_systemd_takes_what_was_installed(own_rig):
    """`systemd-analyze verify` has nothing to say about either file."""
    lines = unit(own_rig, "systemd", "--install").splitlines()
    paths = [line.removeprefix("current: ") for line in lines[:-1]]
    folder = f"{own_rig.home}/.config/systemd/user"
    assert [f"{folder}/zdo-relay.service", f"{folder}/zdo-relay.timer"] == paths

    ran = subprocess.run(
        ["systemd-analyze", "verify", "--user", *paths],
        env=own_rig.env | {"XDG_RUNTIME_DIR": own_rig.root},
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip

    assert (0, []) == (ran.returncode, [s for s in ran.stderr.splitlines() if "zdo-relay" in s])


# A stand-in for each scheduler: what it has is in a file beside it, and it notes what it is asked.
SCHEDULER = """\
#!/bin/sh
echo "$@" >> "$0.asked"
cat "$0.has"
"""


@pytest.mark.parametrize(
    ("kind", "program", "line"),
    [
        ("systemd", "systemctl", "n/a n/a n/a n/a {}.timer {}.service"),
        ("launchd", "launchctl", "-\t0\t{}"),
    ],
)
def test_a10_a_label_is_compared_whole(own_rig, kind, program, line):
    """One that begins with another's is another; installing and asking tell a scheduler nothing."""
    scheduler = Path(own_rig.bin, program)
    scheduler.write_text(SCHEDULER, encoding="ascii")
    scheduler.chmod(0o700)
    has = Path(f"{scheduler}.has")
    unit(own_rig, kind, "--install")

    def active():
        return unit(own_rig, kind, "--status").splitlines()[-1]

    for other in ("zdo-relay.other", "zdo-relay2", "my-zdo-relay", "zdo"):
        has.write_text(line.format(other, other) + "\n")
        assert "active: no" == active(), other
    has.write_text(line.format("zdo-relay", "zdo-relay") + "\n")
    assert "active: yes" == active()
    asked = set(Path(f"{scheduler}.asked").read_text().splitlines())
    assert 1 == len(asked)
    assert "list" in asked.pop()


def test_a10_a_second_label_is_a_second_unit(own_rig):
    """Taking one away leaves the other."""
    unit(own_rig, "launchd", "--install")
    unit(own_rig, "launchd", "--install", "--label", "zdo-relay.other")

    unit(own_rig, "launchd", "--uninstall")

    assert ["zdo-relay.other.plist"] == os.listdir(f"{own_rig.home}/Library/LaunchAgents")


def test_a10_two_wishes_are_refused(own_rig):
    """64, and nothing is written."""
    said = own_rig.zdo("unit", "systemd", "--install", "--status")

    complained(said, "usage", 64)
    assert not os.path.lexists(f"{own_rig.home}/.config")


def test_a01_the_object_names_who_asked(own_rig):
    """The option before the environment."""
    env = {"CLAUDE_CODE_SESSION_ID": "ambient"}

    for words in (["doctor", "--json"], ["unit", "cron", "--json"]):
        asked = [own_rig.zdo(*words, *more, env=env) for more in ([], ["--session-id", "me"])]
        assert ["ambient", "me"] == [said.json["sender"] for said in asked]
