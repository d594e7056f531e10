"""Whatever is wrong with the input or the machine: one line, one object, the right exit."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from dispatch.rig.rig import P, Rig, Said
from dispatch.rig.script import T
from tests.acceptance.saying import (
    CONFIG,
    OTHER,
    SHELL,
    answered,
    complained,
    delivered,
    refused,
    shell_claude,
    story,
)

COUNT = itertools.count()


def by_shell(rig: Rig, after: str, *words: str, before: str = "") -> Said:
    """What the command said in a shell with *before* in front and redirections *after* it."""
    script = f'{before}\n"$@" {after}'
    ended = subprocess.run(
        ["sh", "-c", script, "sh", *rig.command(*words)],
        env=rig.env,
        capture_output=True,
        timeout=20,
        check=False,
    )
    out, err = (each.decode() for each in (ended.stdout, ended.stderr))
    return Said(subprocess.CompletedProcess((), ended.returncode, out, err))


# -- the configuration

TARGET = f'[targets.x]\nsession = "{T}"\n'


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("[station", 1, None),
        ('[station]\nname = "a\n', 2, None),
        ("[station]\nname = 1\n", 2, "station.name"),
        ("[station]\n\nnmae = 1\n", 3, "station.nmae"),
        ("[stations]\n", 1, "stations"),
        ("x = 1\n", 1, "x"),
        ("station = 1\n", 1, "station"),
        ('[station]\ncarrier_session = "nope"\n', 2, "station.carrier_session"),
        ("[carrier]\nsettle_s = -1\n", 2, "carrier.settle_s"),
        ('[carrier]\npass_env = ["CLAUDE_X"]\n', 2, "carrier.pass_env"),
        ('[carrier]\npass_env = "HOME"\n', 2, "carrier.pass_env"),
        ("[targets]\nx = 1\n", 2, "targets.x"),
        ("[targets.x]\n", 1, "targets.x"),
        (f'{TARGET}name = "y"\n', 1, "targets.x"),
        ('[targets.x]\nsession = "nope"\n', 2, "targets.x.session"),
        (f'{TARGET}carrier_session = "y"\n', 3, "targets.x.carrier_session"),
        (f'{TARGET}carrier_session = "x"\n', 3, "targets.x.carrier_session"),
        (f'{TARGET}\n["-rf"]\n', 4, "-rf"),
        (TARGET.replace("x]", '"-rf"]'), 1, "targets.-rf"),
        (TARGET.replace("x]", '"a\\nb"]'), 1, "targets.'a\\nb'"),
        (TARGET + TARGET, 3, None),
        ("a = " + "[" * 5000, 1, None),
    ],
)
def test_a_bad_configuration_is_named_by_file_line_and_key(rig, text, line, key):
    """Bad TOML, unknown keys and wrong types are 78 with file, line and key."""
    rig.configure(text)

    told = refused(rig, rig.zdo("kiss", "--json", "x", "line"), "config-invalid", 78)

    place = f"{rig.config_file}:{line}: "
    assert told["reason"].startswith(place), told["reason"]
    assert key is None or told["reason"].startswith(f"{place}{key}: "), told["reason"]


def test_every_command_that_reads_the_configuration_says_so(rig):
    """With a bad file the looking commands are 78 too, each with one object and one line."""
    rig.configure("[station")

    for words in (("resolve", "x"), ("sessions",), ("targets",)):
        said = rig.zdo(*words, "--json")
        complained(said, "config-invalid", 78)
        assert words[0] == answered(said)["command"]


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "device", "large", "latin-1", "loop"])
def test_a_configuration_that_is_no_plain_file_never_hangs(rig, kind):
    """A pipe, socket, folder, device or an oversized file as configuration is 78, at once."""
    path = f"{rig.root}/odd-{kind}"
    ours = socket.socket(socket.AF_UNIX)
    make = {
        "fifo": lambda: os.mkfifo(path),
        "socket": lambda: ours.bind(path),
        "folder": lambda: os.mkdir(path),
        "device": lambda: os.symlink("/dev/zero", path),
        "large": lambda: Path(path).write_bytes(b"#" * (2 << 20)),
        "latin-1": lambda: Path(path).write_bytes(b'\n[station]\nname = "\xe4"\n'),
        "loop": lambda: os.symlink(path, path),
    }
    make[kind]()

    said = rig.zdo("kiss", "--json", "x", "line", env={"ZDO_CONFIG": path}, timeout=10)

    ours.close()
    assert path in refused(rig, said, "config-invalid", 78)["reason"]


def test_a_dangling_configuration_is_none(rig):
    """All of the file is optional: a link to nowhere is as good as no file."""
    path = f"{rig.root}/dangling.toml"
    os.symlink(f"{rig.root}/never-made", path)
    rig.door()

    delivered(rig.zdo("kiss", "--json", T, "x", env={"ZDO_CONFIG": path}))


def test_a_symlinked_configuration_folder_is_followed(rig):
    """`~/.config/zdo` may be a link, as dotfile managers make it."""
    real, shown = f"{rig.root}/dotfiles", f"{rig.home}/.config/zdo"
    os.makedirs(real)
    os.makedirs(os.path.dirname(shown))
    Path(f"{real}/zdo.toml").write_text(CONFIG, encoding="utf-8")
    os.symlink(real, shown)
    rig.door()
    env = {name: value for name, value in rig.env.items() if name != "ZDO_CONFIG"}

    delivered(rig.zdo("kiss", "--json", "fable", "x", whole_env=env))


def test_a_symlinked_claude_folder_is_followed(rig):
    """`~/.claude` may be a link."""
    rig.door()
    os.symlink(rig.claude_dir, f"{rig.root}/linked")

    told = delivered(
        rig.zdo("kiss", "--json", "fable", "x", env={"CLAUDE_CONFIG_DIR": f"{rig.root}/linked"})
    )

    assert "surfaced" == told["proof"]


# -- the line


@pytest.mark.parametrize(
    ("line", "offset"),
    [
        (b"", 0),
        (b" ", 0),
        (b" \n\t ", 0),
        ("\N{NO-BREAK SPACE}".encode(), 0),
        (b"ab\x1b[31m", 2),
        (b"a\rb", 1),
        ("ä\x7f".encode(), 2),
        ("ä\x9b".encode(), 2),
        (b"ab\xff", 2),
        (b"\xed\xa0\x80", 0),
        (b"ab\xc3", 2),
        (b"a" * 65_537, 65_536),
        ("ä".encode() * 32_769, 65_536),
    ],
)
@pytest.mark.parametrize("way", ["argv", "pipe"])
def test_a_bad_line_is_65_with_the_offset(rig, line, offset, way):
    """Empty, blank, too long, control characters, not UTF-8: 65 and the byte to blame."""
    word = os.fsdecode(line) if way == "argv" else "-"

    said = rig.zdo("kiss", "--json", "fable", "--", word, stdin=line)

    told = refused(rig, said, "line-invalid", 65)
    assert told["reason"].endswith(f" at byte {offset}"), told["reason"]
    assert [] == rig.runs()


def test_a_nul_can_only_come_by_pipe_or_file(rig):
    """NUL is 65 with its offset, from stdin and from a file."""
    path = Path(rig.root) / "line"
    path.write_bytes(b"ab\0c")

    for said in (
        rig.zdo("kiss", "--json", "fable", "-", stdin=b"ab\0c"),
        rig.zdo("kiss", "--json", "fable", "--file", str(path)),
    ):
        assert "at byte 2" in refused(rig, said, "line-invalid", 65)["reason"]


@pytest.mark.parametrize("given", [b"\xed\xb2\x80", b"caf\xe9"])
def test_lone_surrogates_never_come_back_as_a_traceback(rig, given):
    """Bytes that are not UTF-8 are refused wherever they stand, in every locale."""
    text = os.fsdecode(given)
    for words, name, status in (
        (("fable", text), "line-invalid", 65),
        ((text, "x"), "target-unknown", 67),
        (("nobody", "x", "--session-id", text), "target-unknown", 67),
    ):
        refused(rig, rig.zdo("kiss", "--json", *words), name, status)
    complained(rig.zdo("kiss", "nobody", "x", "--key", text), "usage", 64)
    complained(rig.zdo("show", text), "target-unknown", 67)
    complained(rig.zdo("verify", text), "target-unknown", 67)
    complained(rig.zdo("resolve", text), "target-unknown", 67)


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_exactly_one_trailing_newline_is_not_part_of_the_line(rig, end):
    """Fine print: `-` and `--file` lose one newline, argv loses none."""
    door = rig.door()
    path = Path(rig.root) / "line"
    path.write_text("x" + end, encoding="ascii")

    delivered(rig.zdo("kiss", "--json", "fable", "-", stdin="x" + end))
    delivered(rig.zdo("kiss", "--json", "fable", "--file", str(path)))
    delivered(rig.zdo("kiss", "--json", "fable", "x" + end))

    shorter = "x" + end.removesuffix("\n")
    assert [shorter, shorter, "x" + end] == door.lines()


@pytest.mark.parametrize("kind", ["absent", "folder", "device", "socket", "loop", "nul"])
def test_a_line_file_that_cannot_be_one_is_65(rig, kind):
    """`--file` of something that holds no line is 65; an endless device is not read to its end."""
    path = f"{rig.root}/line-{kind}"
    ours = socket.socket(socket.AF_UNIX)
    make = {
        "folder": lambda: os.mkdir(path),
        "device": lambda: os.symlink("/dev/zero", path),
        "socket": lambda: ours.bind(path),
        "loop": lambda: os.symlink(path, path),
    }
    make.get(kind, lambda: None)()
    given = path if kind != "nul" else "/dev/null"

    refused(
        rig, rig.zdo("kiss", "--json", "fable", "--file", given, timeout=10), "line-invalid", 65
    )

    ours.close()


def test_the_bytes_of_a_line_are_the_same_in_every_locale(rig):
    """The line is bytes: a locale that is not UTF-8 does not damage or refuse valid UTF-8."""
    door = rig.door()
    for env in (
        {"LANG": "C"},
        {"LC_ALL": "POSIX"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "nowhere.ISO-8859-1", "PYTHONIOENCODING": "latin-1"},
    ):
        delivered(rig.zdo("kiss", "--json", "fable", f"grün {len(env)}", env=env))

    assert {"grün 1", "grün 3", "grün 2"} == set(door.lines())


def test_the_bytes_of_a_line_are_the_same_in_a_latin_1_locale(rig):
    """A locale of one byte a character must not turn one UTF-8 character into two."""
    made = subprocess.run(
        ["localedef", "-i", "en_US", "-f", "ISO-8859-1", f"{rig.root}/en_US.ISO-8859-1"],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("this machine cannot make a Latin-1 locale")
    door = rig.door()
    env = {"LOCPATH": rig.root, "LC_ALL": "en_US.ISO-8859-1", "PYTHONUTF8": "0"}

    delivered(rig.zdo("kiss", "--json", "fable", "grün", env=env))

    assert ["grün"] == door.lines()


# -- addresses

HOSTILE = {
    "path": "../x",
    "root": "/etc/passwd",
    "long": "n" * 300,
    "emoji": "\N{PILE OF POO}",
    "named-path": "name:../x",
    "newline": "a\nb",
    "escape": "a\x1b]0;x\x07",
    "star": "*",
    "blank": " ",
    "slash": "/deploy",
    "quote": 'it\'s "x"; rm -rf',
    "percent": "%s{0}",
    "colon": "host:name",
    "column": "name:",
    "sql": "x' OR '1'='1",
}


@pytest.mark.parametrize("address", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_address_is_refused_when_nobody_has_it(rig, address):
    """An odd address is compared and refused, on one printable line; it is never a path."""
    door = rig.door()

    said = rig.zdo("kiss", "--json", address, "x")

    told = refused(rig, said, "target-unknown", 67)
    assert (None, []) == (told["target"]["session_id"], door.calls())
    assert said.err.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    "address", [HOSTILE[n] for n in ("path", "long", "emoji", "newline", "slash", "star")]
)
def test_a_hostile_name_is_served_exactly(rig, address):
    """A running session that is called so is told; a name is only ever compared."""
    door = rig.door(name=address)

    told = delivered(rig.zdo("kiss", "--json", f"name:{address}", "x"))
    shown = rig.zdo("sessions")

    assert (T, ["x"]) == (told["target"]["session_id"], door.lines())
    assert (0, 2) == (shown.exit, shown.out.count("\n"))


def test_an_address_that_begins_with_a_hyphen_needs_the_two_hyphens(rig):
    """`-rf` is an option that does not exist, 64; after `--` it is an address like another, 67."""
    said = rig.zdo("kiss", "--json", "-rf", "x")
    complained(said, "usage", 64)
    answered(said)

    refused(rig, rig.zdo("kiss", "--json", "--", "-rf", "x"), "target-unknown", 67)


def test_an_empty_address_names_nobody(rig):
    """An unset variable in a script must not reach a session without a name."""
    door = rig.door(name="")

    for address in ("", "name:"):
        refused(rig, rig.zdo("kiss", "--json", address, "x"), "target-unknown", 67)
    assert [] == door.calls()


@pytest.mark.parametrize("address", ["TK-11665", "tk-1"])
def test_a_ticket_without_a_session_is_unbound(rig, address):
    """`TK-<number>` is 67 `ticket-unbound`, and stderr says TK REQUIRED."""
    assert (
        "TK REQUIRED"
        in refused(rig, rig.zdo("kiss", "--json", address, "x"), "ticket-unbound", 67)["reason"]
    )


@pytest.mark.parametrize("sender", ["x" * 300, "\x1b[31mred", "a\nb", "", "../x"])
def test_a_sender_is_stored_as_it_is(rig, sender):
    """A02: any sender is kept, never an error; an empty one is unset."""
    rig.door()

    told = delivered(rig.zdo("kiss", "--json", "fable", "x", "--session-id", sender))

    assert (
        (sender or "anonymous")
        == told["sender"]
        == story(rig, told["delivery_id"])[0]["result"]["sender"]
    )


# -- usage


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("nosuch",),
        ("kiss",),
        ("kiss", "fable"),
        ("kiss", "fable", "a", "b"),
        ("kiss", "fable", "a", "--file", "b"),
        ("kiss", "fable", "a", "--nosuch"),
        ("kiss", "fable", "a", "--lock-timeout", "soon"),
        ("kiss", "fable", "a", "--lock-timeout", "-1"),
        ("kiss", "fable", "a", "--lock-timeout", "nan"),
        ("kiss", "fable", "a", "--wait", "nan"),
        ("kiss", "fable", "a", "--key", ""),
        ("kiss", "fable", "a", "--key", "k" * 201),
        ("kiss", "fable", "a", "--key", "ä" * 101),
        ("kiss", "fable", "a", "--proof", "promise"),
        ("kiss", "fable", "a", "--json=yes"),
        ("show",),
        ("verify", "a", "b"),
        ("resolve",),
    ],
)
def test_bad_words_are_64_and_never_2(rig, words):
    """Usage is 64 `usage`; it has no delivery and starts nothing."""
    told = rig.zdo(*words, "--json")

    complained(told, "usage", 64)
    assert (None, "usage") == (answered(told)["delivery_id"], answered(told)["class"])
    assert [] == rig.runs()


@pytest.mark.parametrize("words", [("--help",), ("kiss", "--help"), ("kiss", "-h"), ("--version",)])
def test_help_is_no_failure(rig, words):
    """Help and version are on stdout, with 0 and nothing on stderr."""
    said = rig.zdo(*words)

    assert (0, "", True) == (said.exit, said.err, len(said.out) > 3)


def test_an_unknown_delivery_is_67(rig):
    """`show` and `verify` of a delivery that nobody knows are 67, with one whole object."""
    for command in ("show", "verify"):
        for word in (OTHER, "../x", "", "nope"):
            said = rig.zdo(command, "--json", "--", word)
            complained(said, "target-unknown", 67)
            assert command == answered(said)["command"]


# -- the machine


def test_a_cron_environment_is_enough(rig):
    """`env -i PATH=/usr/bin:/bin` with the rig's folders: no HOME, TERM, LANG, USER is needed."""
    door = rig.door()
    env = {
        "PATH": "/usr/bin:/bin",
        "ZDO_CONFIG": rig.config_file,
        "ZDO_STATE_DIR": rig.state,
        "ZDO_CLAUDE_BIN": rig.claude,
        "CLAUDE_CONFIG_DIR": rig.claude_dir,
    }

    told = delivered(rig.zdo("kiss", "--json", "fable", "grün", whole_env=env))

    assert ("surfaced", ["grün"]) == (told["proof"], door.lines())
    assert {"PATH"} == rig.runs()[0]["env"].keys() & {"HOME", "PATH", "LANG", "USER", "TERM"}


def test_without_a_home_the_users_own_is_taken(rig):
    """HOME unset or empty is the user data base's, never a crash and never the cwd."""
    for env in ({}, {"HOME": ""}):
        said = rig.zdo("sessions", "--json", whole_env={"PATH": "/usr/bin:/bin"} | env)
        assert said.exit in (0, 78), said
        assert "Traceback" not in said.err


@pytest.mark.parametrize("home", ["absent", "/dev/null", "relative"])
def test_an_odd_home_is_told_or_served(rig, home):
    """A HOME that is no folder: a refusal in its form, no traceback, nothing left in the cwd."""
    cwd = folder(f"{rig.root}/odd-{next(COUNT)}")
    home = f"{rig.root}/odd-{next(COUNT)}" if home == "absent" else home
    env = {"PATH": "/usr/bin:/bin", "HOME": home}

    said = rig.zdo("kiss", "--json", "fable", "x", whole_env=env, cwd=cwd)

    told = answered(said)
    assert said.err.startswith(f"zdo: {told['class']}: ")
    assert told["class"] in ("target-unknown", "config-invalid")
    assert [] == os.listdir(cwd)


def test_a_deleted_working_folder_does_not_matter(rig):
    """Started from a folder that is gone, a kiss and the looking commands work."""
    rig.door()
    gone = f"{rig.root}/gone"
    for words in (("kiss", "--json", "fable", "x"), ("sessions", "--json"), ("targets", "--json")):
        os.mkdir(gone)
        said = by_shell(rig, "", *words, before=f"cd {gone}; rmdir {gone}")
        assert (0, "") == (said.exit, said.err), said


def test_relative_folders_are_taken_from_the_working_folder(rig):
    """`ZDO_STATE_DIR=state` and `CLAUDE_CONFIG_DIR=home/.claude` are made absolute once."""
    rig.door()
    env = {"ZDO_STATE_DIR": "state", "ZDO_CONFIG": "zdo.toml", "ZDO_CLAUDE_BIN": "bin/claude"}

    delivered(
        rig.zdo(
            "kiss", "--json", "fable", "x",
            env=env | {"CLAUDE_CONFIG_DIR": "home/.claude"}, cwd=rig.root,
        )
    )  # fmt: skip

    (run,) = rig.runs()
    assert (rig.claude_dir, rig.claude) == (run["env"]["CLAUDE_CONFIG_DIR"], run["argv"][0])


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_reach_the_carrier(rig, closed):
    """With any of the three streams closed the line is delivered, and the carrier has its own."""
    door = rig.door()

    said = by_shell(rig, closed, "kiss", "--json", "fable", "x")

    assert (0, ["x"]) == (said.exit, door.lines()), said
    fds = rig.runs()[0]["fds"]
    assert "/dev/null" == fds["0"]
    assert ["pipe", "pipe"] == [fds[name].partition(":")[0] for name in ("1", "2")]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_keep_the_exit_of_a_refusal(rig, closed):
    """With streams closed a refusal has its own exit, and what can be said is said."""
    said = by_shell(rig, closed, "kiss", "--json", "nobody", "x")

    assert 67 == said.exit
    assert ("2>&-" in closed) == (said.err == "")
    assert (">&-" in closed.replace("2>&-", "")) == (said.out == "")


@pytest.mark.parametrize("words", [("sessions",), ("targets", "--json"), ("show", "--json", OTHER)])
def test_closed_streams_are_no_traceback_for_those_who_look(rig, words):
    """The looking commands too end with a status of their own when stdout is closed."""
    said = by_shell(rig, ">&-", *words)

    assert said.exit in (0, 67, 74), said
    assert "Traceback" not in said.err


def test_a_closed_stdin_holds_no_line(rig):
    """`-` with stdin closed is 65: there is no line."""
    refused(rig, by_shell(rig, "<&-", "kiss", "--json", "fable", "-"), "line-invalid", 65)


@pytest.mark.parametrize("json_", [True, False])
def test_a_full_stdout_is_told_and_the_line_is_in(rig, json_):
    """Stdout on /dev/full: the delivery is made, the exit is 74, and stderr says one line."""
    door = rig.door()
    words = ["kiss", *(["--json"] if json_ else []), "fable", "x"]

    said = by_shell(rig, ">/dev/full", *words)

    assert (74, ["x"]) == (said.exit, door.lines()), said
    assert 1 == said.err.count("\n"), said
    assert said.err.startswith("zdo: ")


def test_a_full_stdout_does_not_change_a_refusal(rig):
    """Stdout on /dev/full: a refusal keeps its exit and its line on stderr."""
    complained(by_shell(rig, ">/dev/full", "kiss", "--json", "nobody", "x"), "target-unknown", 67)


def test_a_reader_that_left_is_no_traceback(rig):
    """A closed pipe on stdout, as with `| head -0`: the line is in, no traceback."""
    door = rig.door()
    take, give = os.pipe()
    os.close(take)

    process = rig.start("kiss", "fable", "x", stdout=give)
    os.close(give)
    _, err = process.communicate(timeout=20)

    assert (["x"], False) == (door.lines(), "Traceback" in err)
    assert process.returncode in (0, 74)


def test_an_ignored_sigchld_does_not_hide_the_outcome(rig):
    """Started by a parent that ignores SIGCHLD, PIPE and the rest: 0, and the carrier does not."""
    rig.door()

    def ignore() -> None:
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    delivered(rig.zdo("kiss", "--json", "fable", "x", preexec_fn=ignore))

    assert ([], []) == (rig.runs()[0]["ignored"], rig.runs()[0]["blocked"])


def test_nothing_that_is_open_reaches_the_carrier(rig):
    """The carrier has its three streams and the lease, whatever its caller left open."""
    rig.door()
    extra = os.open("/etc/hostname", os.O_RDONLY)

    delivered(rig.zdo("kiss", "--json", "fable", "x", pass_fds=(extra,)))
    os.close(extra)

    lease = f"{rig.state}/locks/{P}.lock"
    assert {"/dev/null", "pipe", lease} == {
        what.partition(":")[0] for what in rig.runs()[0]["fds"].values()
    }


# -- the state folder


@pytest.fixture
def odd_state(rig):
    """A path beside the rig's own state, for a test to spoil."""
    return f"{rig.root}/odd-{next(COUNT)}"


def folder(path: str, mode: int = 0o700) -> Path:
    """A new folder at *path*, of exactly that *mode*."""
    os.mkdir(path)
    os.chmod(path, mode)
    return Path(path)


SPOIL = {
    "file": lambda path: Path(path).touch(),
    "symlink": lambda path: os.symlink(folder(path + "-real"), path),
    "dangling": lambda path: os.symlink(path + "-nowhere", path),
    "fifo": os.mkfifo,
    "foreign": lambda path: os.chown(folder(path), 12345, 12345),
    "shared": lambda path: (folder(path, OPEN) / "somebody-elses").touch(),
    "database-folder": lambda path: os.mkdir(folder(path) / "zdo.db"),
    "database-prose": lambda path: (folder(path) / "zdo.db").write_bytes(b"prose, no database" * 9),
    "database-link": lambda path: os.symlink("/etc/hostname", folder(path) / "zdo.db"),
    "attempts-link": lambda path: os.symlink("/tmp", folder(path) / "attempts"),
    "locks-link": lambda path: os.symlink("/tmp", folder(path) / "locks"),
    "postbox-link": lambda path: os.symlink("/tmp", folder(path) / "postbox"),
}
OPEN = 0o777


@pytest.mark.parametrize("how", SPOIL)
def test_a_state_folder_that_cannot_be_trusted_is_73(rig, odd_state, how):
    """A link, a file, another user's or a shared folder is 73 `spool-unwritable`."""
    door = rig.door()
    SPOIL[how](odd_state)

    env = {"ZDO_STATE_DIR": odd_state, "ZDO_CONFIG": f"{rig.root}/never-made"}
    said = rig.zdo("kiss", "--json", T, "x", env=env, timeout=15)

    told = refused(rig, said, "spool-unwritable", 73, known=False)
    assert (True, [], []) == (odd_state in told["reason"], rig.runs(), door.calls())


def test_a_world_writable_state_folder_of_ours_is_tightened(rig, odd_state):
    """An own folder that holds nothing foreign is made 0700 and used."""
    rig.door()
    folder(odd_state, OPEN)

    env = {"ZDO_STATE_DIR": odd_state}
    delivered(rig.zdo("kiss", "--json", "fable", "x", env=env, preexec_fn=lambda: os.umask(0)))

    modes = {os.stat(path).st_mode & 0o777 for path in Path(odd_state).rglob("*") if path.is_file()}
    assert (0o700, {0o600}) == (os.stat(odd_state).st_mode & 0o777, modes)


def test_a_full_disk_is_73_and_nothing_is_started(rig, odd_state):
    """A disk that takes no byte: 73 `spool-unwritable`, the door is untouched."""
    import resource

    door = rig.door()

    def no_space() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    env = {"ZDO_STATE_DIR": odd_state}
    said = rig.zdo("kiss", "--json", "fable", "x", env=env, preexec_fn=no_space)

    refused(rig, said, "spool-unwritable", 73, known=False)
    assert ([], []) == (rig.runs(), door.calls())


# -- the rows


def test_odd_things_among_the_rows_never_hang(rig):
    """Pipes, sockets, folders, links and rubbish among the rows and keys are passed over."""
    door = rig.door()
    rows = f"{rig.claude_dir}/sessions"
    os.mkfifo(f"{rows}/11.json")
    with socket.socket(socket.AF_UNIX) as ours:
        ours.bind(f"{rows}/12.json")
    os.mkdir(f"{rows}/13.json")
    os.symlink("absent", f"{rows}/14.json")
    os.symlink(f"{rows}/15.json", f"{rows}/15.json")
    os.symlink("/dev/zero", f"{rows}/16.json")
    Path(f"{rows}/17.json").write_bytes(b"\0" * 4096)
    Path(f"{rows}/18.json").write_bytes(b"[" * 200_000)
    Path(f"{rows}/x\udcff.json").touch()
    Path(f"{rows}/{'9' * 40}.json").write_text("{}", encoding="ascii")
    for key in Path(rows).glob(f"{door.pid}.*.key"):
        key.unlink()
        os.mkfifo(key)

    delivered(rig.zdo("kiss", "--json", "fable", "x", timeout=10))
    said = rig.zdo("sessions", "--json", timeout=10)

    assert (0, 10, 1) == (said.exit, len(said.json["skipped"]), len(said.json["sessions"]))
    assert 0 == rig.zdo("sessions", env={"LC_ALL": "C", "PYTHONUTF8": "0"}, timeout=10).exit


@pytest.mark.parametrize("what", ["file", "fifo", "socket", "loop"])
def test_a_sessions_folder_that_is_none_is_told(rig, what):
    """Something else where the rows should be is 78, at once; a missing folder is no row at all."""
    rows = f"{rig.claude_dir}/sessions"
    refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "target-not-running", 69)
    ours = socket.socket(socket.AF_UNIX)
    {
        "file": lambda: Path(rows).touch(),
        "fifo": lambda: os.mkfifo(rows),
        "socket": lambda: ours.bind(rows),
        "loop": lambda: os.symlink(rows, rows),
    }[what]()

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x", timeout=10), "config-invalid", 78)

    ours.close()
    assert rows in told["reason"]


@pytest.mark.parametrize("what", ["file", "fifo", "projects-fifo"])
def test_transcripts_that_are_none_never_hang(rig, what):
    """Something odd where the transcript should be only weakens the proof."""
    door = rig.door(accept="bare")
    if what == "projects-fifo":
        os.mkfifo(f"{rig.claude_dir}/projects")
    else:
        os.makedirs(os.path.dirname(door.transcript))
        (os.mkfifo if what == "fifo" else os.mkdir)(door.transcript)

    told = delivered(rig.zdo("kiss", "--json", "fable", "x", timeout=15))

    assert "written" == told["proof"]
    delivered(rig.zdo("verify", "--json", told["delivery_id"], timeout=15))


# -- every refusal is known afterwards


def test_show_knows_every_refusal(rig):
    """Every refusal after parsing has a delivery id that `zdo show` tells the story of."""
    rig.door()
    shell_claude(rig, SHELL % "")
    for words, name in (
        (("nobody", "x"), "target-unknown"),
        (("itself", "x"), "carrier-misbound"),
        (("fable", ""), "line-invalid"),
        (("TK-1", "x"), "ticket-unbound"),
    ):
        told = answered(rig.zdo("kiss", "--json", *words))
        (event,) = story(rig, told["delivery_id"])
        assert ("refused", name) == (event["kind"], event["class"])
        assert told == event["result"]
        shown = rig.zdo("show", told["delivery_id"])
        assert f" refused {name}: " in shown.out


def test_the_same_key_with_other_bytes_is_a_conflict(rig):
    """`key-conflict` is 65, and the line that stands keeps its story."""
    door = rig.door()
    first = delivered(rig.zdo("kiss", "--json", "fable", "one", "--key", "build-1"))

    told = refused(
        rig, rig.zdo("kiss", "--json", "fable", "two", "--key", "build-1"), "key-conflict", 65
    )
    again = delivered(rig.zdo("kiss", "--json", "fable", "one", "--key", "build-1"))

    assert first["delivery_id"] == told["delivery_id"] == again["delivery_id"]
    assert ["one"] == door.lines()


def test_one_key_does_not_claim_a_second_target(rig):
    """Law 2: the same key and bytes for another session are never called delivered to it."""
    rig.configure(f'{CONFIG}[targets.other]\nsession = "{OTHER}"\n')
    _, second = rig.door(), rig.door(name="other", session_id=OTHER)
    delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", "build-2"))

    said = rig.zdo("kiss", "--json", "other", "x", "--key", "build-2")

    refused(rig, said, "key-conflict", 65)
    assert [] == second.calls()


def test_json_is_ascii_safe_for_any_terminal(rig):
    """The object and the line come out on a terminal that can spell nothing but ASCII."""
    rig.door(name="\N{SNOWMAN}")
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    said = rig.zdo("kiss", "--json", "\N{SNOWMAN}", "x", env=env)
    shown = rig.zdo("sessions", env=env)

    assert (0, True, 0, True) == (said.exit, said.out.isascii(), shown.exit, shown.out.isascii())
    assert T == json.loads(said.out)["target"]["session_id"]
