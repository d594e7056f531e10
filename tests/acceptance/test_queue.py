"""`zdo kiss --queue` and `--or-queue`: kept on disk, in order, and nothing started."""

from __future__ import annotations

import os
import signal

import pytest

from dispatch.rig.rig import P
from dispatch.rig.script import T
from tests.acceptance.saying import (
    CONFIG,
    OTHER,
    answered,
    complained,
    delivered,
    journal,
    lease,
    passed,
    queued,
    refused,
    shell_claude,
    spool,
    wait_for,
)

# -- --queue


def test_a_queued_line_is_on_disk_and_nothing_is_started(own_rig):
    """Exit 0 `queued`, one sentence; no carrier, no lease, no door, no attempt."""
    door = own_rig.door()

    said = own_rig.zdo("kiss", "--queue", "fable", "one")

    assert (0, "") == (said.exit, said.err)
    assert said.out.startswith("queued: fable; delivery ")
    assert ([], []) == (own_rig.runs(), door.calls())
    assert ([], []) == (
        os.listdir(f"{own_rig.state}/locks"),
        os.listdir(f"{own_rig.state}/attempts"),
    )
    (line,) = spool(own_rig)
    assert (said.out.split()[-1], "fable", "queued", 0, 3) == tuple(
        line[name] for name in ("delivery_id", "target", "state", "attempts", "bytes")
    )


def test_a_queued_line_has_a_story(own_rig):
    """`zdo show` knows it at once, and never its text."""
    (delivery,) = queued(own_rig, "fable", "CANARY")

    said = own_rig.zdo("show", delivery)

    assert 0 == said.exit
    assert said.out.endswith("Z queued queued\n")
    for words in (("show", "--json", delivery), ("spool", "list"), ("spool", "list", "--json")):
        shown = own_rig.zdo(*words)
        assert (0, False) == (shown.exit, "CANARY" in shown.out + shown.err)


@pytest.mark.parametrize("address", ["fable", T, T.upper(), OTHER, "name:later"])
def test_a_target_need_not_run_to_have_a_queue(own_rig, address):
    """A configured target, a session id, `name:…`; it is delivered when there is one."""
    queued(own_rig, address, "one")
    passed(own_rig.zdo("relay", "--json"), delivered=0, left=1)
    own_rig.door(name="later", session_id=OTHER if address == OTHER else T)

    passed(own_rig.zdo("relay", "--json"), delivered=1, left=0)


REFUSED = [
    (("itself", "x"), "carrier-misbound", 2),
    (("mute", "x"), "carrier-unbound", 2),
    (("nobody", "x"), "target-unknown", 67),
    (("TK-1", "x"), "ticket-unbound", 67),
    (("fable", ""), "line-invalid", 65),
    (("fable", "a\x1bb"), "line-invalid", 65),
]


@pytest.mark.parametrize(("words", "name", "status"), REFUSED)
def test_what_can_never_be_delivered_is_refused_at_once(own_rig, words, name, status):
    """As a kiss would refuse it; nothing is kept but the refusal's own entry."""
    own_rig.configure(f'{CONFIG}[targets.mute]\nsession = "{OTHER}"\ncarrier_session = ""\n')

    refused(own_rig, own_rig.zdo("kiss", "--queue", "--json", *words), name, status)

    assert [] == spool(own_rig)


@pytest.mark.parametrize("option", [("--or-queue",), ("--dry-run",), ("--proof", "surfaced")])
def test_an_option_that_needs_a_start_is_usage(own_rig, option):
    """--queue starts nothing, so nothing can be tried, shown or waited for."""
    said = own_rig.zdo("kiss", "--queue", "--json", "fable", "x", *option)

    complained(said, "usage", 64)
    assert not os.path.exists(own_rig.state)


def test_a_carrier_cannot_queue_either(own_rig):
    """K16 holds for lines that would go later too."""
    env = {"ZDO_CARRIER_DOOR_TARGET": "fable"}

    complained(own_rig.zdo("kiss", "--queue", "fable", "x", env=env), "nested-kiss", 2)


def test_a_bad_configuration_and_a_bad_state_folder_are_said(own_rig):
    """78 and 73, before anything is kept."""
    env = {"ZDO_STATE_DIR": "/dev/null/state"}
    complained(own_rig.zdo("kiss", "--queue", "fable", "x", env=env), "spool-unwritable", 73)
    own_rig.configure("[station")

    complained(own_rig.zdo("kiss", "--queue", "fable", "x"), "config-invalid", 78)


def test_the_line_may_come_from_anywhere(own_rig):
    """Stdin, a file, behind `--`; with its sender."""
    note = f"{own_rig.root}/note"
    with open(note, "w", encoding="ascii") as file:
        file.write("from a file\n")
    door = own_rig.door()
    for words, stdin in (
        (("-",), "from a pipe\n"),
        (("--file", note), None),
        (("--session-id", "me", "--", "--help"), None),
    ):
        said = own_rig.zdo("kiss", "--queue", "fable", *words, stdin=stdin)
        assert 0 == said.exit, said

    assert ["anonymous", "anonymous", "me"] == [line["sender"] for line in spool(own_rig)]
    passed(own_rig.zdo("relay", "--json"), delivered=3, runs=1)
    assert ["from a pipe", "from a file", "--help"] == door.lines()


# -- order


def test_queued_lines_arrive_in_their_order(own_rig):
    """By whatever address of the session they were queued."""
    door = own_rig.door()
    for number, address in enumerate(("fable", T, "name:fable", "fable", T)):
        queued(own_rig, address, f"line {number}")

    passed(own_rig.zdo("relay", "--json"), delivered=5, runs=1)

    assert [f"line {number}" for number in range(5)] == door.lines()


def test_a_plain_kiss_does_not_wait_for_the_queue(own_rig):
    """It is for now; those that wait come later."""
    door = own_rig.door()
    queued(own_rig, "fable", "queued")
    delivered(own_rig.zdo("kiss", "--json", "fable", "now"))
    passed(own_rig.zdo("relay", "--json"), delivered=1)

    assert ["now", "queued"] == door.lines()


def test_a_name_means_the_session_that_bears_it_now(own_rig):
    """Another one that takes the name later is not meant: the line waits for its own."""
    first = own_rig.door(name="clerk", session_id=OTHER)
    (delivery,) = queued(own_rig, "clerk", "for the first clerk")
    own_rig.close_doors()
    second = own_rig.door(name="clerk")

    passed(own_rig.zdo("relay", "--json"), delivered=0, left=1)
    assert ([], OTHER) == (second.calls(), spool(own_rig)[0]["target"])
    again = own_rig.door(name="typist", session_id=OTHER)
    passed(own_rig.zdo("relay", "--json"), delivered=1)

    assert (["for the first clerk"], "delivered-start") == (
        again.lines(), journal(own_rig, delivery)[-1],
    )  # fmt: skip
    assert first.session_id == again.session_id


def test_a_name_that_is_spelt_as_one_means_whoever_bears_it(own_rig):
    """While nobody bears it, `name:clerk` means the first that does."""
    queued(own_rig, "name:clerk", "for the clerk")
    door = own_rig.door(name="clerk", session_id=OTHER)

    passed(own_rig.zdo("relay", "--json"), delivered=1)
    assert ["for the clerk"] == door.lines()


def test_a_line_for_an_idle_target_waits_until_it_is(own_rig):
    """`--if-idle` holds for the queue too, and for those behind it."""
    door = own_rig.door(status="busy", accept="busy")
    queued(own_rig, "fable", "when idle", options=("--if-idle",))
    queued(own_rig, "fable", "behind")
    passed(own_rig.zdo("relay", "--json"), delivered=0, left=2)
    door.change(status="idle", accept="surface")

    passed(own_rig.zdo("relay", "--json"), delivered=2)
    assert ["when idle", "behind"] == door.lines()


# -- keys


def test_a_key_is_one_line_in_the_queue_too(own_rig):
    """Queued again it is the same delivery, and a kiss with the key says that it waits."""
    ids = [queued(own_rig, "fable", "one", options=("--key", "build-1"))[0] for _ in range(2)]
    waits = delivered(own_rig.zdo("kiss", "--json", "fable", "one", "--key", "build-1"), "queued")
    other = own_rig.zdo("kiss", "--queue", "--json", "fable", "two", "--key", "build-1")

    assert [waits["delivery_id"]] * 2 == ids
    refused(own_rig, other, "key-conflict", 65, known=False)
    assert ["build-1"] == [line["key"] for line in spool(own_rig)]
    door = own_rig.door()
    passed(own_rig.zdo("relay", "--json"), delivered=1)
    for words in ((), ("--queue",)):
        delivered(own_rig.zdo("kiss", "--json", "fable", "one", "--key", "build-1", *words))
    assert ["one"] == door.lines()


def test_a_line_that_was_delivered_now_is_not_queued_by_its_key(own_rig):
    """The key's own verdict is the answer."""
    door = own_rig.door()
    first = delivered(own_rig.zdo("kiss", "--json", "fable", "one", "--key", "build-1"))
    again = delivered(own_rig.zdo("kiss", "--json", "--queue", "fable", "one", "--key", "build-1"))

    assert (first["delivery_id"], []) == (again["delivery_id"], spool(own_rig))
    assert ["one"] == door.lines()


# -- --or-queue


def or_queue(rig, *words, **how):
    """What a kiss came to that may wait."""
    return rig.zdo("kiss", "--json", "fable", "one", "--or-queue", *words, **how)


def test_a_line_that_gets_in_is_not_queued(own_rig):
    """--or-queue changes nothing about a delivery."""
    own_rig.door()

    delivered(or_queue(own_rig))
    assert [] == spool(own_rig)


FAILS = {
    "target-not-running": ({}, None, ()),
    "target-status": ({}, {"status": "busy"}, ("--if-idle",)),
    "door-dropped": ({}, {"accept": "dropped"}, ()),
    "carrier-exit": ({"hook": "none", "outcome": "unknown-postbox"}, {}, ()),
    "carrier-output": ({"hook": "none", "outcome": "empty"}, {}, ()),
    "carrier-timeout": ({"before_s": 30}, {}, ()),
    "wrapper-not-run": ({"hook": "none"}, {}, ()),
}


@pytest.mark.parametrize("name", FAILS)
def test_a_line_that_may_be_repeated_waits(own_rig, name):
    """After 69 target-not-running, any 75 and any 76: 0 `queued`, the first class in the reason."""
    own_rig.configure(CONFIG.replace("timeout_s = 20", "timeout_s = 1"))
    behaviour, script, words = FAILS[name]
    door = None if script is None else own_rig.door(**script)
    own_rig.install_claude(**behaviour)

    told = delivered(or_queue(own_rig, *words), "queued")

    assert told["reason"].startswith(f"{name}: "), told
    (line,) = spool(own_rig)
    assert (told["delivery_id"], "queued") == (line["delivery_id"], line["state"])
    own_rig.install_claude()
    if door is None:
        own_rig.door()
    else:
        door.change(status="idle", accept="surface")
    own_rig.let_time_pass()
    passed(own_rig.zdo("relay", "--json"), delivered=1, left=0)


def test_a_line_whose_postbox_is_in_use_waits(own_rig):
    """75 `carrier-busy`, at once with --lock-timeout 0."""
    own_rig.door()
    with lease(own_rig):
        told = delivered(or_queue(own_rig, "--lock-timeout", "0"), "queued")

    assert told["reason"].startswith("carrier-busy: ")
    passed(own_rig.zdo("relay", "--json"), delivered=1)


STAYS = {
    "door-refused": (77, {"accept": "refuse"}, {}),
    "door-held": (3, {"accept": "hold"}, {}),
    "unknown": (3, {"accept": "drop", "eof_after": None}, {}),
    "carrier-mismatch": (3, {}, {"session": OTHER}),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_must_not_be_repeated_is_never_queued(own_rig, name):
    """Refused, held and unknown outcomes keep their class and exit."""
    own_rig.configure(CONFIG.replace("settle_s = 0.05", "settle_s = 0.5"))
    status, script, behaviour = STAYS[name]
    own_rig.door(**script)
    own_rig.install_claude(**behaviour)

    refused(own_rig, or_queue(own_rig), name, status)

    assert "queued" not in [line["state"] for line in spool(own_rig)]


@pytest.mark.parametrize(
    ("words", "name", "status"),
    [(("nobody", "x"), "target-unknown", 67), (("itself", "x"), "carrier-misbound", 2)],
)
def test_what_was_never_to_be_delivered_is_not_queued(own_rig, words, name, status):
    """Time would not mend it."""
    said = own_rig.zdo("kiss", "--json", "--or-queue", *words)

    refused(own_rig, said, name, status)
    assert [] == spool(own_rig)


def test_a_missing_claude_is_told_and_not_queued(own_rig):
    """69 `carrier-spawn` is for a person; --queue would keep the line."""
    own_rig.door()
    os.unlink(own_rig.claude)

    refused(own_rig, or_queue(own_rig), "carrier-spawn", 69)
    assert [] == spool(own_rig)


def test_a_kiss_that_is_cut_short_is_an_honest_doubt(own_rig):
    """Ctrl-C at the door: not queued, for the line may be in."""
    own_rig.door(accept="drop", eof_after=None)
    kiss = own_rig.start("kiss", "--json", "fable", "one", "--or-queue")
    wait_for(own_rig.runs, "the carrier")
    wait_for(
        lambda: any(name == "intent" for _, _, files in os.walk(own_rig.state) for name in files),
        "the wrapper",
    )
    kiss.send_signal(signal.SIGINT)
    out, _ = kiss.communicate(timeout=30)

    assert (3, True) == (kiss.returncode, '"class": "unknown"' in out)
    assert ["uncertain"] == [line["state"] for line in spool(own_rig)]


def test_every_kept_line_has_all_its_fields(own_rig):
    """The object of a queued line is the object of every kiss."""
    said = own_rig.zdo("kiss", "--queue", "--json", "fable", "one")

    told = answered(said)
    assert {"result_session_id": None, "num_turns": None, "cost_usd": None, "exit": None,
            "wall_ms": None, "session_id": P} == told["carrier"]  # fmt: skip
    assert {None} == set(told["receipt"].values())
    assert (T, None, "target") == tuple(told["target"][n] for n in ("session_id", "pid", "route"))


def test_a_stand_in_in_shell_is_enough_for_the_queue_too(own_rig):
    """As USAGE shows it: one run of it carries two lines."""
    door = own_rig.door()
    shell_claude(
        own_rig,
        '#!/bin/sh\nsh -c "$ZDO_CARRIER_WRAPPER" </dev/null >/dev/null\n'
        'printf \'{"type":"result","session_id":"%s"}\\n\' "$ZDO_CARRIER_SESSION"\n',
    )
    queued(own_rig, "fable", "one", "two")

    passed(own_rig.zdo("relay", "--json"), delivered=2, runs=1)
    assert ["one", "two"] == door.lines()
