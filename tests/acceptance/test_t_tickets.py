"""T01 to T07: a line finds its session by the ticket it works on, or by its pane."""

from __future__ import annotations

import json
import os

import pytest

from dispatch.rig.rig import P, Rig
from dispatch.rig.script import T
from tests.acceptance.saying import OTHER, delivered, refused
from tests.fakes.tickets import Tickets

PANE = "w0t1p0:5F0C8B7E-0000-4000-8000-00000000ABCD"
TICKET = "TK-11665"


@pytest.fixture
def tickets(rig: Rig) -> Tickets:
    """The ledger of the rig's home, empty; what was read of the last test's is remembered."""
    tickets = Tickets(rig.home)
    with open(tickets.path, "w", encoding="ascii"):
        pass
    return tickets


def in_pane(rig: Rig, **more: object) -> object:
    """The session T, running in PANE."""
    return rig.door(env={"TERM_SESSION_ID": PANE}, **more)


def kissed(rig: Rig, address: str = TICKET) -> dict[str, object]:
    """What a kiss that must arrive says of its target."""
    told = delivered(rig.zdo("kiss", "--json", address, "tests are green"))
    return told["target"]


def unbound(rig: Rig, address: str = TICKET) -> str:
    """Why *address* is bound to nobody."""
    said = rig.zdo("kiss", "--json", address, "tests are green")
    told = refused(rig, said, "ticket-unbound", 67)
    assert "TK REQUIRED" in said.err
    assert [] == rig.runs()
    return str(told["reason"])


@pytest.mark.parametrize("address", [TICKET, TICKET.lower()])
def test_t01_a_line_goes_to_the_session_that_is_bound_to_the_ticket(rig, tickets, address):
    """T01: by the source's name as the route, in any case, and under the session's own id."""
    in_pane(rig)
    tickets.add(f"{TICKET.lower()}-fix-x", "create")
    tickets.add(f"{TICKET}-fix-x", "assign", agent=f"claude@{PANE}")

    target = kissed(rig, address)

    assert (T, T, "session_ledger") == (target["id"], target["session_id"], target["route"])


def test_t01_a_ticket_is_matched_whole(rig, tickets):
    """T01: TK-1166 is another ticket than TK-11665."""
    in_pane(rig)
    for ticket in (TICKET, "TK-1166"):
        tickets.add(ticket, "create", 60)
    tickets.add(TICKET, "assign", agent=f"claude@{PANE}")

    unbound(rig, "TK-1166")


def test_t02_the_process_comes_before_its_arguments_and_they_before_the_ledger(rig, tickets):
    """T02: the first source that binds wins, and a later one never overrides."""
    door = in_pane(rig, words=("work on TK-2",))
    for ticket in ("TK-1", "TK-2", "TK-3"):
        tickets.add(ticket, "create", 3600)
    tickets.add("TK-3", "comment", agent=f"claude@{PANE}")
    assert "main_process_argument" == kissed(rig, "TK-2")["route"]

    tickets.add("TK-1", "action", correlation_id=f"run-{door.pid}-7")

    assert "correlation" == kissed(rig, "TK-1")["route"]
    for ticket in ("TK-2", "TK-3"):
        assert "ticket-unbound" == rig.zdo("kiss", "--json", ticket, "line").json["class"]


def test_t02_two_tickets_in_the_arguments_leave_it_to_the_ledger(rig, tickets):
    """T02: argv abstains; the newest event of the pane decides."""
    in_pane(rig, words=("TK-1 or TK-2",))
    for ticket in ("TK-1", "TK-2"):
        tickets.add(ticket, "create", 3600)
    tickets.add("TK-2", "comment", agent=f"claude@{PANE}")

    assert "session_ledger" == kissed(rig, "TK-2")["route"]


def test_t03_a_resumed_session_keeps_the_work_of_its_pane(rig, tickets):
    """T03: events from before the process started bind, and the newest of them does."""
    in_pane(rig)
    tickets.add("TK-1", "create", 7200)
    tickets.add(TICKET, "create", 7200)
    tickets.add("TK-1", "comment", 3600, agent=f"claude@{PANE}")
    tickets.add(TICKET, "comment", 1800, agent=f"claude@{PANE}")

    (row,) = rig.zdo("sessions", "--json").json["sessions"]

    assert (TICKET, "session_ledger") == (row["ticket"]["id"], row["ticket"]["source"])
    assert "session_ledger" == kissed(rig)["route"]


@pytest.mark.parametrize("kind", ["read", "status", "blocker"])
def test_t03_noise_binds_nobody(rig, tickets, kind):
    """T03: reading a ticket is not working on it."""
    in_pane(rig)
    tickets.add(TICKET, "create", 60)
    tickets.add(TICKET, kind, agent=f"claude@{PANE}")

    unbound(rig)


def test_t04_a_ticket_without_its_create_binds_from_no_source(rig, tickets):
    """T04: a ghost is 67, whatever names it, and the newest one is not passed over."""
    door = in_pane(rig, words=(f"on {TICKET}",))
    tickets.add("TK-1", "create", 60)
    tickets.add("TK-1", "comment", 50, agent=f"claude@{PANE}")
    tickets.add(TICKET, "comment", agent=f"claude@{PANE}", correlation_id=f"pid:{door.pid}")

    assert "has no create for it" in unbound(rig)
    assert "ticket-unbound" == rig.zdo("kiss", "--json", "TK-1", "line").json["class"]


def test_t04_a_create_as_the_last_line_binds(rig, tickets):
    """T04: the order in the file does not matter, nor does a missing newline at its end."""
    in_pane(rig)
    tickets.add(TICKET, "comment", 60, agent=f"claude@{PANE}")
    unbound(rig)
    line = '{"id": "TK-11665", "type": "create", "agent": "u", "ts": "2026-01-01T00:00:00+01:00"}'
    tickets.write(line)

    assert "session_ledger" == kissed(rig)["route"]


def test_t05_an_argument_is_no_environment(rig, tickets):
    """T05: the pane id comes from the environment alone."""
    trap = "w9t9p9:TRAP"
    rig.door(words=(f"TERM_SESSION_ID={trap}",), env={"TERM_SESSION_ID": PANE})
    tickets.add(TICKET, "create", 60)
    tickets.add(TICKET, "comment", agent=f"claude@{trap}")
    unbound(rig)

    refused(rig, rig.zdo("kiss", "--json", f"tsid:{trap}", "line"), "target-unknown", 67)
    assert ("tsid", T) == tuple(kissed(rig, f"tsid:{PANE}")[name] for name in ("route", "id"))


def test_t06_without_ps_the_other_routes_work(rig, tickets):
    """T06: nothing that a kiss by name or id needs is asked of ps."""
    in_pane(rig)
    tickets.add(TICKET, "create", 60)
    nowhere = {"PATH": rig.bin}
    rig.configure(f'[station]\nclaude_bin = "{rig.claude}"\n')

    assert 0 == rig.zdo("kiss", T, "by id", env=nowhere).exit
    assert 0 == rig.zdo("kiss", "fable", "by name", env=nowhere).exit
    assert 0 == rig.zdo("sessions", env=nowhere).exit


def test_t06_a_session_of_another_agent_name_is_unbound(rig, tickets):
    """T06: honestly, and with the reason."""
    in_pane(rig)
    tickets.add(TICKET, "create", 60)
    tickets.add(TICKET, "assign", agent="the-builder")

    unbound(rig)
    (row,) = rig.zdo("sessions", "--json").json["sessions"]
    assert row["ticket"] is None
    assert PANE in row["ticket_reason"]
    assert "TK REQUIRED" in rig.zdo("sessions").out


def test_t07_two_sessions_in_one_pane_are_a_refusal(rig, tickets):
    """T07: by pane and by ticket, with both ids, and nothing is started."""
    in_pane(rig)
    rig.door(session_id=OTHER, name="second", env={"TERM_SESSION_ID": PANE})
    tickets.add(TICKET, "create", 60)
    tickets.add(TICKET, "comment", agent=f"claude@{PANE}")

    for address in (TICKET, f"tsid:{PANE}"):
        told = refused(rig, rig.zdo("kiss", "--json", address, "line"), "target-ambiguous", 67)
        assert all(each[:8] in told["reason"] for each in (T, OTHER)), told
    assert [] == rig.runs()


def test_t08_a_configured_target_may_be_a_ticket_or_a_pane(rig, tickets):
    """T08: its route is the target's; what it means is found at every kiss."""
    rig.configure(f'[targets.job]\nticket = "{TICKET}"\n\n[targets.desk]\ntsid = "{PANE}"\n')
    unbound(rig, "job")
    refused(rig, rig.zdo("kiss", "--json", "desk", "line"), "target-not-running", 69)
    in_pane(rig)
    tickets.add(TICKET, "create", 60)
    tickets.add(TICKET, "comment", agent=f"claude@{PANE}")

    assert ("job", "target", T) == tuple(
        kissed(rig, "job")[n] for n in ("id", "route", "session_id")
    )
    assert ("desk", "target", T) == tuple(
        kissed(rig, "desk")[n] for n in ("id", "route", "session_id")
    )


def test_t08_the_ledger_may_be_elsewhere_and_name_processes_in_its_own_way(rig):
    """T08: `[tickets] root` and `correlation`."""
    door = rig.door()
    elsewhere = Tickets(f"{rig.root}/project")
    elsewhere.add(TICKET, "create", 60)
    elsewhere.add(TICKET, "action", correlation_id=f"job/{door.pid}")
    rig.configure(f"[tickets]\nroot = '{rig.root}/project'\ncorrelation = '^job/([0-9]+)$'\n")

    assert "correlation" == kissed(rig)["route"]


def test_a_line_for_a_ticket_waits_for_the_session_that_has_it_now(rig, tickets):
    """A queued ticket means that session: one that takes the ticket later is not meant."""
    door = in_pane(rig)
    tickets.add(TICKET, "create", 60)
    tickets.add(TICKET, "comment", agent=f"claude@{PANE}")
    told = delivered(rig.zdo("kiss", "--queue", "--json", TICKET, "kept"), "queued")
    assert T == told["target"]["id"]
    tickets.add("TK-2", "create")
    tickets.add("TK-2", "comment", agent=f"claude@{PANE}")

    assert 0 == rig.zdo("relay").exit

    assert 1 == len(door.calls())


def test_a_ticket_that_is_the_postboxs_is_misbound(rig, tickets):
    """The guard does not care by which form the postbox was named."""
    rig.door(session_id=P, env={"TERM_SESSION_ID": PANE})
    tickets.add(TICKET, "create", 60)
    tickets.add(TICKET, "comment", agent=f"claude@{PANE}")

    refused(rig, rig.zdo("kiss", "--json", TICKET, "line"), "carrier-misbound", 2)
    assert [] == rig.runs()


def unusable(door: object) -> None:
    """Take from the row of *door* what makes it usable."""
    with open(door.row_file, encoding="utf-8") as file:
        row = json.load(file)
    del row["messagingSocketPath"]
    with open(door.row_file, "w", encoding="utf-8") as file:
        json.dump(row, file)


@pytest.mark.parametrize("torn", [False, True])
def test_t07_a_session_without_a_usable_row_is_a_candidate_all_the_same(rig, tickets, torn):
    """T07: the pane's events may be its own, so the other is not the only one."""
    in_pane(rig)
    second = rig.door(session_id=OTHER, name="second", env={"TERM_SESSION_ID": PANE})
    unusable(second)
    if torn:
        os.truncate(second.row_file, 40)
    tickets.add(TICKET, "create", 60)
    tickets.add(TICKET, "comment", agent=f"claude@{PANE}")

    for address in (TICKET, f"tsid:{PANE}"):
        told = refused(rig, rig.zdo("kiss", "--json", address, "line"), "target-ambiguous", 67)
        assert f"pid {second.pid}, whose row cannot be used" in told["reason"]
    assert [] == rig.runs()


def test_t07_what_a_session_without_a_usable_row_does_is_not_its_neighbours(rig, tickets):
    """T07: its ticket is bound to nobody, and the refusal says to whom it would be."""
    in_pane(rig)
    other = rig.door(session_id=OTHER, name="second")
    unusable(other)
    tickets.add(TICKET, "create", 60)
    tickets.add(TICKET, "action", correlation_id=f"pid:{other.pid}")

    assert f"pid {other.pid}, whose row cannot be used, is" in unbound(rig)


def test_a_configured_ticket_that_nobody_works_on_may_wait(own_rig):
    """As a configured name may; the relay asks again in every pass."""
    rig, tickets = own_rig, Tickets(own_rig.home)
    rig.configure(f'[targets.job]\nticket = "{TICKET}"\n')
    told = delivered(rig.zdo("kiss", "--queue", "--json", "job", "kept"), "queued")
    assert ("job", P) == (told["target"]["id"], told["carrier"]["session_id"])
    refused(rig, rig.zdo("kiss", "--queue", "--json", TICKET, "kept"), "ticket-unbound", 67)
    assert 0 == rig.zdo("relay").exit
    door = in_pane(rig)
    tickets.add(TICKET, "create", 60)
    tickets.add(TICKET, "comment", agent=f"claude@{PANE}")

    assert 0 == rig.zdo("relay").exit

    assert 1 == len(door.calls(1))


def test_a_doubt_stays_in_the_session_where_it_is(own_rig):
    """The ticket moves on; what is held holds back its own session's queue, and no other's."""
    rig, tickets = own_rig, Tickets(own_rig.home)
    rig.configure(f'[targets.job]\nticket = "{TICKET}"\n')
    first = in_pane(rig, accept="hold")
    tickets.add(TICKET, "create", 60)
    tickets.add(TICKET, "comment", 50, agent=f"claude@{PANE}")
    delivered(rig.zdo("kiss", "--queue", "--json", "job", "one"), "queued")
    assert 3 == rig.zdo("relay").exit
    second = rig.door(session_id=OTHER, name="second", env={"TERM_SESSION_ID": "another"})
    tickets.add("TK-2", "create", 40)
    tickets.add("TK-2", "comment", agent=f"claude@{PANE}")
    tickets.add(TICKET, "comment", agent="claude@another")
    first.change(accept="surface")
    for address, line in (("job", "two"), (OTHER, "three"), (T, "four")):
        delivered(rig.zdo("kiss", "--queue", "--json", address, line), "queued")

    rig.zdo("relay")

    told = [f["message"]["content"] for c in second.calls() for f in c["frames"] if "message" in f]
    assert ["two", "three"] == told
    assert 1 == len(first.calls())
