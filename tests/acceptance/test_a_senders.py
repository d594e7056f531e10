"""A01, A02, A08: who speaks, the same for every verb, and what becomes of a sender that left."""

from __future__ import annotations

import itertools
import json
import os
import re
import sqlite3
from typing import TYPE_CHECKING

import pytest
import typer

from dispatch.cli import app, main
from dispatch.rig.script import T
from tests.acceptance.saying import OTHER, answered, complained, delivered, refused, story

if TYPE_CHECKING:
    from dispatch.rig.rig import Rig, Said

NAMES = ("ZDO_SESSION_ID", "AGENT_EVENT_BUS_SESSION_ID", "CLAUDE_CODE_SESSION_ID")
# From the strongest to the weakest: what each gives when it is set.
GIVEN = ("option", "zdo", "bus", "claude")
ABSENT = "d0000000-0000-4000-8000-00000000dead"

# Each verb with words that make it answer with its own object; a refusal is one too.
VERBS = {
    "kiss": ("nobody", "hello"),
    "resolve": ("nobody",),
    "sessions": (),
    "targets": (),
    "relay": (),
    "fsck": (),
    "spool list": (),
    "verify": ("--open",),
    "receipts": (),
    "senders": (),
    "doctor": (),
    "ack": ("--cursor", "0"),
    "unregister": (),
}
# What stands in the journal as done by somebody else than the line's sender.
HANDS = (("spool", "drop"), ("spool", "requeue"))


def commands() -> dict[str, typer.core.TyperCommand]:
    """Every command by its words."""
    found = {}
    for name, command in typer.main.get_command(app.app).commands.items():
        for word, part in getattr(command, "commands", {"": command}).items():
            found[f"{name} {word}".strip()] = part
    return found


def case(which: tuple[bool, ...]) -> tuple[dict[str, str], list[str], str]:
    """The environment, the option, and who speaks then; what is not given is empty."""
    option, *variables = [value if given else "" for value, given in zip(GIVEN, which, strict=True)]
    env = dict(zip(NAMES, variables, strict=True))
    speaks = next((value for value in (option, *variables) if value), "anonymous")
    return env, ["--session-id", option] if option else [], speaks


@pytest.mark.parametrize("verb", VERBS)
def test_a01_every_verb_has_the_same_sender(own_rig, verb, monkeypatch, capsys):
    """A01: option, then three variables in their order, then anonymous; empty is unset."""
    for name, value in own_rig.env.items():
        monkeypatch.setenv(name, value)
    for which in itertools.product((True, False), repeat=4):
        env, option, speaks = case(which)
        for name, value in env.items():
            monkeypatch.setenv(name, value)

        main.run([*verb.split(), *VERBS[verb], *option, "--json"])

        told = json.loads(capsys.readouterr().out)
        assert speaks == told["sender"], (which, told)


@pytest.mark.parametrize("which", list(itertools.product((True, False), repeat=4)))
def test_a01_what_is_done_by_hand_is_attributed(own_rig, which, monkeypatch, capsys):
    """A01: who drops or requeues another's line stands in the journal beside its sender."""
    for name, value in own_rig.env.items():
        monkeypatch.setenv(name, value)
    main.run(["kiss", "--queue", "--json", "--session-id", "author", T, "kept"])
    delivery = json.loads(capsys.readouterr().out)["delivery_id"]
    env, option, speaks = case(which)
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    for words in HANDS:
        assert 0 == main.run([*words, delivery, *option])

    with sqlite3.connect(f"{own_rig.state}/zdo.db") as link:
        bodies = link.execute("SELECT body FROM event ORDER BY id").fetchall()
    link.close()
    entries = [json.loads(body) for (body,) in bodies][-2:]
    assert [(speaks, "author")] * 2 == [(e["by"], e["result"]["sender"]) for e in entries]


def test_a01_every_help_names_every_source():
    """A01: nobody has to look elsewhere for how a sender is found."""
    for words, command in commands().items():
        shown = " ".join(
            option.help or "" for option in command.params if "--session-id" in option.opts
        )
        missing = [name for name in ("--session-id", *NAMES, "anonymous") if name not in shown]
        assert not missing, (words, missing)


def test_a02_an_unregistered_sender_is_kept_as_it_is(rig):
    """A02: in the JSON, in the journal and in the receipt of the wrapper."""
    odd = "nightly job №7"
    rig.door()

    told = delivered(rig.zdo("kiss", "--json", "fable", "hello", "--session-id", odd))

    assert odd == told["sender"]
    begun, judged = story(rig, told["delivery_id"])
    assert [odd, odd] == [each["result"]["sender"] for each in (begun, judged)]
    assert odd == judged["evidence"]["receipt"]["sender"]
    assert odd == rig.runs()[-1]["env"]["ZDO_SENDER_SESSION_ID"]


def test_a02_register_never_takes_the_id_of_its_surroundings(rig):
    """A02: a hook would register whatever session it runs in."""
    said = rig.zdo("register", "--json", env=dict.fromkeys(NAMES, OTHER))

    complained(said, "usage", 64)
    assert [] == [each for each in senders(rig) if each["session_id"] == OTHER]


def senders(rig: Rig) -> list[dict[str, object]]:
    """Who is registered, or was."""
    return rig.zdo("senders", "--json").json["senders"]


def leave(rig: Rig, session: str) -> None:
    """Register *session* and take it back."""
    for verb in ("register", "unregister"):
        assert 0 == rig.zdo(verb, "--session-id", session).exit


def test_a08_a_sender_that_left_still_speaks_and_is_warned(own_rig):
    """A08: 0, one object, and one line on stderr that says since when."""
    own_rig.door()
    leave(own_rig, "gone")

    for words in (("--json",), ("--json", "--queue")):
        said = own_rig.zdo("kiss", "fable", f"hello {words}", *words, "--session-id", "gone")
        assert 0 == said.exit
        assert "gone" == answered(said)["sender"]
        assert re.fullmatch(r"zdo: warning: [^\n]*gone[^\n]* 20\d\d-[^\n]+\n", said.err), said


@pytest.mark.parametrize("words", [(), ("--queue",), ("--dry-run",), ("--or-queue",)])
def test_a08_a_target_that_left_is_refused(own_rig, words):
    """A08: 67, however it is kissed and by whatever address; registered again it is not."""
    own_rig.door()
    leave(own_rig, T.upper())
    before = len(own_rig.runs())

    for address in ("fable", T, "name:fable"):
        said = own_rig.zdo("kiss", "--json", address, "hello", *words)
        refused(own_rig, said, "target-unknown", 67)
    complained(own_rig.zdo("resolve", "fable"), "target-unknown", 67)
    assert before == len(own_rig.runs())

    assert 0 == own_rig.zdo("register", "--session-id", T).exit
    delivered(own_rig.zdo("kiss", "--json", "fable", "hello"))


def test_a08_a_target_that_left_while_its_line_waited_gets_nothing(own_rig):
    """The line is kept with the reason, until somebody decides."""
    door = own_rig.door()
    told = delivered(own_rig.zdo("kiss", "--queue", "--json", "fable", "kept"), "queued")
    leave(own_rig, T)

    assert 0 == own_rig.zdo("relay").exit

    assert [] == door.calls()
    (line,) = [
        e
        for e in own_rig.zdo("spool", "list", "--json").json["lines"]
        if e["delivery_id"] == told["delivery_id"]
    ]
    assert ("queued", "target-unknown") == (line["state"], line["class"])
    assert 0 == own_rig.zdo("register", "--session-id", T).exit
    assert 0 == own_rig.zdo("relay").exit
    assert 1 == len(door.calls(1))


def answer(said: Said) -> str:
    """The delivery id of a kiss that arrived."""
    return str(delivered(said)["delivery_id"])


def test_an_answer_finds_the_sender(rig):
    """By the delivery alone; from inside a session the answer's sender is that session."""
    asker = rig.door(session_id=OTHER, name="asker")
    door = rig.door()
    asked = answer(rig.zdo("kiss", "--json", "--sign", "fable", "green?", "--session-id", OTHER))
    (frame,) = [f for call in door.calls(1) for f in call["frames"] if f["type"] == "user"]
    assert (
        f'[zdo] from {OTHER}, delivery {asked}, answer: zdo kiss {OTHER} "..."\ngreen?'
        == (frame["message"]["content"])
    )

    said = rig.zdo("kiss", "--json", "--reply", asked, "yes", env={"CLAUDE_CODE_SESSION_ID": T})

    told = delivered(said)
    assert (OTHER, T) == (told["target"]["session_id"], told["sender"])
    assert 1 == len(asker.calls(1))
    back = answer(rig.zdo("kiss", "--json", "--reply", told["delivery_id"], "good"))
    assert back != asked
    assert 2 == len(door.calls(2))


def test_nobody_answers_whom_no_address_names(rig):
    """67, before anything starts."""
    rig.door()
    for sender, why in (("anonymous", "anonymous"), ("nightly", "'nightly'")):
        asked = answer(rig.zdo("kiss", "--json", "fable", sender, "--session-id", sender))
        started = len(rig.runs())

        told = refused(
            rig, rig.zdo("kiss", "--json", "--reply", asked, "yes"), "target-unknown", 67
        )

        assert why in told["reason"]
        assert started == len(rig.runs())
    refused(rig, rig.zdo("kiss", "--json", "--reply", ABSENT, "yes"), "target-unknown", 67)


@pytest.mark.parametrize("words", [("--reply", ABSENT, "fable", "yes"), ("--reply", ABSENT), ()])
def test_an_answer_has_one_word_and_no_address(rig, words):
    """Everything else is a mistake on the command line."""
    complained(rig.zdo("kiss", *words), "usage", 64)


def test_an_answer_may_come_from_a_file_or_a_pipe(rig):
    """As every line may."""
    rig.door(session_id=OTHER, name="asker")
    rig.door()
    asked = answer(rig.zdo("kiss", "--json", "fable", "green?", "--session-id", OTHER))
    path = f"{rig.root}/line.txt"
    with open(path, "w", encoding="ascii") as file:
        file.write("from a file\n")

    answer(rig.zdo("kiss", "--json", "--reply", asked, "--file", path))
    answer(rig.zdo("kiss", "--json", "--reply", asked, "-", stdin="from a pipe"))
    os.unlink(path)


def test_a_sender_of_any_length_stops_nobody(own_rig):
    """The kernel takes no such text in one variable; the carrier gets its beginning."""
    rig = own_rig
    door = rig.door()
    long = "y" * 131_060
    for line, sender in (("one", long), ("two", "me")):
        told = delivered(
            rig.zdo("kiss", "--queue", "--json", "fable", line, "--session-id", sender), "queued"
        )
        assert sender == told["sender"]

    assert 0 == rig.zdo("relay").exit

    assert 1 == len(door.calls(1))


def test_looking_needs_no_state_folder_that_works(own_rig):
    """A dry run and a resolve write nothing, so what only writers need does not stop them."""
    rig = own_rig
    rig.door()
    os.mkdir(rig.state, 0o700)
    with open(f"{rig.state}/zdo.db", "wb") as file:
        file.write(b"no database at all" * 500)

    assert 0 == rig.zdo("resolve", "fable").exit
    assert 0 == rig.zdo("kiss", "--dry-run", "fable", "hello").exit


def test_a_key_that_is_known_is_no_answer_to_nobody(rig):
    """An answer to a delivery that never was says so, whatever its key stands for."""
    rig.door()
    answer(rig.zdo("kiss", "--json", "fable", "yes", "--key", "a-key"))

    said = rig.zdo("kiss", "--json", "--reply", ABSENT, "yes", "--key", "a-key")

    complained(said, "target-unknown", 67)
