"""Units: each scheduler reads what was meant, whatever the paths hold, and no secret is in it."""

from __future__ import annotations

import configparser
import os
import plistlib
import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.errors import UnitImpossible
from dispatch.units import (
    LABEL,
    THROTTLE_S,
    Start,
    cron,
    is_listed,
    is_plain_label,
    launchd,
    program_of,
    start_of,
    systemd,
)

PATHS = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="/"), min_size=1
).map(lambda name: f"/{name}")


WORDS = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\ufffe\uffff"),
    min_size=1,
)


def cron_line(program, env, claude):
    """The crontab line for *program* as a shell with *env* would have it run."""
    return cron.cron_line(start_of(program, env, claude))


def command_of(line):
    """What cron hands to the shell: % was escaped, the five fields are gone."""
    assert line.startswith("* * * * * ")
    assert "\n" not in line
    return line.removeprefix("* * * * * ").replace("\\%", "%")


def test_a_plain_machine_has_a_plain_line():
    """Only what cron would not find by itself."""
    env = {"HOME": "/home/u", "PATH": "/home/u/.local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}

    assert cron_line("/home/u/.local/bin/zdo", env, "/usr/bin/claude") == (
        "* * * * * HOME=/home/u ZDO_CLAUDE_BIN=/usr/bin/claude PATH=/usr/bin:/bin"
        " /home/u/.local/bin/zdo relay >/dev/null"
    )


def test_everything_that_leads_to_this_queue_is_in_the_line():
    """Another state folder, configuration or registry is another zdo."""
    env = {
        "ZDO_CONFIG": "/c.toml",
        "ZDO_STATE_DIR": "/s",
        "ZDO_CLAUDE_BIN": "cl",
        "CLAUDE_CONFIG_DIR": "/d",
        "XDG_CONFIG_HOME": "/x",
        "XDG_STATE_HOME": "/y",
        "XDG_RUNTIME_DIR": "/run/user/1",
        "TMPDIR": "/t",
        "ZDO_SESSION_ID": "me",
        "ANTHROPIC_API_KEY": "SECRET",
    }
    words = shlex.split(command_of(cron_line("/bin/zdo", env, "/opt/n/bin/cl")))

    expected = {f"{name}={env[name]}" for name in tuple(env)[:-2] if name != "ZDO_CLAUDE_BIN"}
    assert expected | {"ZDO_CLAUDE_BIN=/opt/n/bin/cl", "PATH=/opt/n/bin:/usr/bin:/bin"} == {
        word for word in words if "=" in word
    }


def test_a_claude_that_is_a_script_finds_its_node_beside_it():
    """The package manager puts both into one folder, which is not on cron's PATH."""
    assert " PATH=/home/u/.nvm/bin:/usr/bin:/bin " in cron_line("/z", {}, "/home/u/.nvm/bin/claude")


def test_a_claude_that_nobody_finds_is_left_as_it_was_named():
    """The relay will say that it is missing."""
    line = cron_line("/z", {"ZDO_CLAUDE_BIN": "nowhere"}, None)

    assert line == "* * * * * ZDO_CLAUDE_BIN=nowhere PATH=/usr/bin:/bin /z relay >/dev/null"
    assert cron_line("/z", {"HOME": ""}, None) == (
        "* * * * * PATH=/usr/bin:/bin /z relay >/dev/null"
    )


def test_a_relative_folder_is_meant_from_here(tmp_path, monkeypatch):
    """Cron starts in the home folder; a `~` is zdo's own to read."""
    monkeypatch.chdir(tmp_path)
    env = {"ZDO_STATE_DIR": "state", "ZDO_CONFIG": "~/zdo.toml", "XDG_STATE_HOME": "ignored"}
    words = shlex.split(command_of(cron_line("/z", env, None)))

    assert {
        f"ZDO_STATE_DIR={tmp_path}/state", "ZDO_CONFIG=~/zdo.toml", "XDG_STATE_HOME=ignored",
        "PATH=/usr/bin:/bin",
    } == {word for word in words if "=" in word}  # fmt: skip


@given(PATHS, PATHS)
def test_no_path_can_act_on_the_line(state, program):
    """Blanks, quotes, percent signs and dollars are letters."""
    line = cron_line(program, {"ZDO_STATE_DIR": state}, None)

    assert shlex.split(command_of(line)) == [
        f"ZDO_STATE_DIR={os.path.abspath(state) if state[0] not in '/~' else state}",
        "PATH=/usr/bin:/bin",
        program,
        "relay",
        ">/dev/null",
    ]


def test_a_shell_reads_a_hard_path(tmp_path):
    """The real one, with every sign that it minds."""
    folder = tmp_path / "a b'c\"$d%e;f#g"
    folder.mkdir()
    program = folder / "zdo"
    program.write_text('#!/bin/sh\necho "$1 $ZDO_STATE_DIR" >&2\n', encoding="ascii")
    program.chmod(0o700)
    line = cron_line(str(program), {"ZDO_STATE_DIR": str(folder)}, None)

    ran = subprocess.run(
        ["/bin/sh", "-c", command_of(line)], env={}, capture_output=True, text=True, check=True
    )

    assert ("", f"relay {folder}\n") == (ran.stdout, ran.stderr)


@pytest.mark.parametrize("word", ["-c", "", "/nowhere/zdo", "page", "folder"])
def test_a_word_that_is_no_program_is_the_one_beside_the_interpreter(word, tmp_path, monkeypatch):
    """As when zdo was started as a module."""
    (tmp_path / "page").touch(0o600)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert program_of(word, "/opt/v/bin/python3") == "/opt/v/bin/zdo"


def test_a_program_is_named_from_the_root(tmp_path, monkeypatch):
    """Whatever it was started as."""
    (tmp_path / "zdo").touch(0o700)
    monkeypatch.chdir(tmp_path)

    assert [f"{tmp_path}/zdo"] * 2 == [
        program_of("./zdo", "/opt/v/bin/python3"),
        program_of(f"{tmp_path}/zdo", "/opt/v/bin/python3"),
    ]


def test_a_newline_in_a_path_is_refused():
    """A crontab line ends there, and the rest would be a line of its own."""
    with pytest.raises(UnitImpossible, match="newline"):
        cron_line("/zdo", {"HOME": "/home/u", "ZDO_STATE_DIR": "/two\nlines"}, None)


SECRETS = {
    "ANTHROPIC_API_KEY": "SECRET",
    "CLAUDE_CODE_OAUTH_TOKEN": "SECRET",
    "ZDO_SESSION_ID": "SECRET",
    "TERM_SESSION_ID": "SECRET",
    "AWS_SECRET_ACCESS_KEY": "SECRET",
}
ENV = {"HOME": "/home/u", "ZDO_STATE_DIR": "/s", "LANG": "C.UTF-8"} | SECRETS
START = start_of("/opt/v/bin/zdo", ENV, "/opt/n/bin/claude")
TOLD = {
    "HOME": "/home/u",
    "ZDO_STATE_DIR": "/s",
    "ZDO_CLAUDE_BIN": "/opt/n/bin/claude",
    "PATH": "/opt/n/bin:/usr/bin:/bin",
}


def test_only_what_leads_to_this_queue_is_told():
    """No credential and no caller's name, whatever the shell has."""
    assert Start("/opt/v/bin/zdo", TOLD) == START
    for unit in (
        cron.crontab(START),
        systemd.units(START, LABEL, "/f", "/s/relay.log"),
        launchd.agent(START, LABEL, "/f", "/s/relay.log"),
    ):
        assert "SECRET" not in repr(unit)


def parsed(text):
    """What a parser of such files reads in *text*."""
    parser = configparser.ConfigParser(interpolation=None, comment_prefixes="#")
    parser.optionxform = str
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def test_systemd_gets_a_service_and_its_timer():
    """One pass a minute, a missed one made up for; trouble is appended to the log."""
    unit = systemd.units(START, LABEL, "/f", "/s/relay.log")
    service, timer = unit.files

    assert ("/f/zdo-relay.service", "/f/zdo-relay.timer") == (service.path, timer.path)
    assert {
        "Unit": {"Description": "zdo relay"},
        "Service": {
            "Type": "oneshot",
            "Environment": " ".join(f'"{name}={value}"' for name, value in TOLD.items()),
            "ExecStart": ':"/opt/v/bin/zdo" relay',
            "KillMode": "process",
            "Restart": "on-abnormal",
            "RestartSec": "30",
            "StandardOutput": "null",
            "StandardError": "append:/s/relay.log",
        },
    } == parsed(service.content.decode())
    assert {
        "Timer": {"OnCalendar": "minutely", "AccuracySec": "5", "Persistent": "true"},
        "Install": {"WantedBy": "timers.target"},
    } == parsed(timer.content.decode())
    assert parsed(unit.text) == parsed(service.content.decode()) | parsed(timer.content.decode())
    assert THROTTLE_S >= 10


def test_what_systemd_is_told_to_do_is_one_command():
    """The timer is begun, not the service; its end needs no file any more."""
    unit = systemd.units(START, "my-relay", "/f", "/s/relay.log")

    assert (
        "systemctl --user daemon-reload && systemctl --user enable --now my-relay.timer",
        "systemctl --user stop my-relay.timer; systemctl --user daemon-reload",
        "my-relay.timer",
        ("/f/timers.target.wants/my-relay.timer",),
    ) == (unit.begin, unit.end, unit.mark, unit.links)


HARD = '/a b/50%/$HOME/it\'s/say "x"/back\\slash/gr\u00fcn/;#'


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="only systemd knows its units")
@pytest.mark.parametrize(
    ("place", "path"),
    [("/plain", "/plain"), ("/a b/50%/$HOME/gr\u00fcn/;#", HARD), ("/%n%%", "/%n%%/\\x41\\")],
)
def test_systemd_itself_finds_no_fault(tmp_path, place, path):
    """A program in such a *place*, and a state folder and a log with every sign that it minds."""
    program, folder = f"{tmp_path}{place}/zdo", f"{tmp_path}{path}"
    os.makedirs(os.path.dirname(program))
    os.makedirs(folder, exist_ok=True)
    shutil.copy("/bin/true", program)
    start = start_of(program, {"ZDO_STATE_DIR": folder}, None)
    unit = systemd.units(start, LABEL, str(tmp_path), f"{folder}/relay.log")
    for file in unit.files:
        with open(file.path, "wb") as opened:
            opened.write(file.content)

    said = subprocess.run(
        ["systemd-analyze", "verify", "--user", *(file.path for file in unit.files)],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip

    assert (0, "") == (
        said.returncode, "".join(line for line in said.stderr.splitlines() if LABEL in line),
    )  # fmt: skip


@pytest.mark.parametrize("sign", ["'", '"', "\\"])
def test_a_program_that_systemd_does_not_start_is_refused(sign):
    """Its own rule; it would only say so in its log."""
    with pytest.raises(UnitImpossible, match="systemd starts no program"):
        systemd.units(Start(f"/{sign}/zdo", {}), LABEL, "/f", "/s/relay.log")


def as_systemd_reads(text):
    """The words of *text*: quoted, with backslashes and doubled percent signs."""
    words, rest = [], text
    while rest:
        assert rest[0] == '"'
        word, at = "", 1
        while rest[at] != '"':
            at += rest[at] == "\\"
            word += rest[at]
            at += 1
        assert word.replace("%%", "").count("%") == 0
        words.append(word.replace("%%", "%"))
        rest = rest[at + 1 :].removeprefix(" ")
    return words


@given(WORDS, WORDS)
def test_no_path_can_act_on_a_unit_file(program, state):
    """Quotes, backslashes, percent signs and blanks of any kind are letters."""
    program = program.translate({ord(sign): None for sign in "'\"\\"})
    start = Start(f"/{program}", {"ZDO_STATE_DIR": f"/{state}"})
    content = systemd.units(start, LABEL, "/f", "/s/relay.log").files[0].content.decode()
    (env,) = [line for line in content.split("\n") if line.startswith("Environment=")]
    (command,) = [line for line in content.split("\n") if line.startswith("ExecStart=:")]

    assert [f"ZDO_STATE_DIR=/{state}"] == as_systemd_reads(env.removeprefix("Environment="))
    assert command.endswith(" relay")
    word = command.removeprefix("ExecStart=:").removesuffix(" relay")
    assert [f"/{program}"] == as_systemd_reads(word)
    plist = plistlib.loads(launchd.agent(start, LABEL, "/f", "/s/relay.log").files[0].content)
    assert [f"/{program}", "relay"] == plist["ProgramArguments"]
    assert {"ZDO_STATE_DIR": f"/{state}"} == plist["EnvironmentVariables"]


def test_launchd_gets_an_agent():
    """One pass a minute; its logs only grow, so only trouble is written there."""
    unit = launchd.agent(START, LABEL, "/f", "/s/relay.log")
    (file,) = unit.files

    assert ("/f/zdo-relay.plist", file.content.decode()) == (file.path, unit.text)
    assert {
        "Label": "zdo-relay",
        "ProgramArguments": ["/opt/v/bin/zdo", "relay"],
        "EnvironmentVariables": TOLD,
        "StartInterval": 60,
        "RunAtLoad": True,
        "ThrottleInterval": 30,
        "StandardOutPath": "/dev/null",
        "StandardErrorPath": "/s/relay.log",
        "AbandonProcessGroup": True,
    } == plistlib.loads(file.content)


def test_what_launchd_is_told_to_do_is_one_command():
    """A loaded agent of that label is replaced, and a folder may be called anything."""
    unit = launchd.agent(START, LABEL, "/it's", "/s/relay.log")

    end = "launchctl bootout gui/$(id -u)/zdo-relay"
    assert (
        f"{end} 2>/dev/null; launchctl bootstrap gui/$(id -u) '/it'\\''s/zdo-relay.plist'",
        end,
        "zdo-relay",
    ) == (unit.begin, unit.end, unit.mark)


# A stand-in that keeps its crontab in a file, and says that there is none as cron's does.
CRONTAB = """\
#!/bin/sh
kept="$(dirname "$0")/kept"
if [ "$1" = -l ]; then
  [ -e "$kept" ] || { echo "no crontab for u" >&2; exit 1; }
  cat "$kept"
else
  cat > "$kept.new" && mv "$kept.new" "$kept"
fi
"""


@pytest.mark.parametrize("path", ["/opt/v/bin/zdo", "/a b/50%/it's/back\\nslash/zdo"])
def test_what_cron_is_told_to_do_is_one_command(tmp_path, path):
    """It puts the line in once, beside others that only look like it, and takes it out again."""
    program = tmp_path / "crontab"
    program.write_text(CRONTAB, encoding="ascii")
    program.chmod(0o700)
    unit = cron.crontab(start_of(path, {}, None))
    kept = tmp_path / "kept"

    def run(command):
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        subprocess.run(["/bin/sh", "-c", command], env=env, check=True, capture_output=True)
        return kept.read_text().splitlines()

    assert [unit.mark] == run(unit.begin)
    others = [f"# {unit.mark}", f"{unit.mark}2", "@daily true"]
    kept.write_text("\n".join([*others, unit.mark]) + "\n")
    assert [*others, unit.mark] == run(unit.begin)
    assert others == run(unit.end)
    assert (f"{unit.mark}\n", (), ()) == (unit.text, unit.files, unit.links)


@pytest.mark.parametrize("way", ["begin", "end"])
@pytest.mark.parametrize("script", ["echo denied >&2; exit 1", "echo half; exit 1", "kill -9 $$"])
def test_a_crontab_that_cannot_be_read_is_not_written(tmp_path, way, script):
    """Whatever the reason is, but that there is none."""
    program = tmp_path / "crontab"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -l ] || {{ : > {tmp_path}/written; exit; }}\n{script}\n',
        encoding="ascii",
    )
    program.chmod(0o700)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = getattr(cron.crontab(start_of("/z", {}, None)), way)

    ran = subprocess.run(["/bin/sh", "-c", command], env=env, check=False, capture_output=True)

    assert (1, False) == (ran.returncode, os.path.lexists(tmp_path / "written"))


@pytest.mark.parametrize("build", [systemd.units, launchd.agent])
def test_each_file_says_whose_it_is(build):
    """As a line of its own; another state folder has another, also where a comment might end."""
    ours, others = (build(START, LABEL, "/f", f"/{name}/relay.log") for name in ("a--b", "a-b"))

    for file in ours.files:
        assert ours.hint in file.content.split(b"\n")
        assert others.hint not in file.content.split(b"\n")
    if build is launchd.agent:
        assert "/a--b/relay.log" == plistlib.loads(ours.files[0].content)["StandardErrorPath"]


@pytest.mark.parametrize("word", ["two\nlines", "\x1b", "\x00", "\x7f", "\ud800", "\uffff", "a\tb"])
@pytest.mark.parametrize("build", [systemd.units, launchd.agent])
def test_what_no_unit_file_can_hold_is_refused(build, word):
    """Else it would be a line of its own, or no file at all."""
    plain = {"start": START, "label": LABEL, "folder": "/f", "log": "/s/relay.log"}
    for changes in (
        {"start": Start(f"/{word}", {})},
        {"start": Start("/z", {"HOME": f"/{word}"})},
        {"folder": f"/{word}"},
        {"log": f"/{word}"},
    ):
        with pytest.raises(UnitImpossible, match="cannot hold a character"):
            build(**(plain | changes))


LISTING = """\
PID\tStatus\tLabel
-\t0\tzdo-relay.other
312\t0\tcom.example.zdo-relay
-\t0\tzdo-relay2
"""


def test_a_label_is_compared_whole():
    """One that begins or ends with another's is another."""
    assert not is_listed("zdo-relay", LISTING)
    assert is_listed("zdo-relay", LISTING + "-\t0\tzdo-relay\n")
    assert is_listed("zdo-relay.other", LISTING)
    assert not is_listed("zdo-relay.timer", "n/a n/a n/a n/a my-zdo-relay.timer zdo-relay.service")
    assert is_listed(
        "zdo-relay.timer", "Mon 14:24 30s left n/a n/a zdo-relay.timer zdo-relay.service"
    )
    assert not is_listed("zdo-relay", "")


def test_a_crontab_line_is_compared_whole():
    """One that was commented out is none."""
    line = cron_line("/z", {}, None)

    assert is_listed(line, f"MAILTO=u\n{line}\n")
    assert not is_listed(line, f"# {line}\n{line} --json\n")


@pytest.mark.parametrize("label", ["a", "zdo-relay", "com.example.zdo_relay-2", "a" * 64])
def test_a_plain_label_is_taken(label):
    """As both schedulers know them."""
    assert is_plain_label(label)


@pytest.mark.parametrize(
    "label",
    ["", "-x", ".x", "..", "1", "_x", "a/b", "a b", "a\nb", "a%b", "a@b", "gr\u00fcn", "a" * 65],
)
def test_a_label_is_a_plain_file_name(label):
    """Never a path, an option, or a template of systemd's."""
    assert not is_plain_label(label)
