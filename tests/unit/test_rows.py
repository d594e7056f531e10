"""Rows: what runs is listed, what does not is skipped with its reason, nothing hangs."""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dispatch.rig.damage import DAMAGES
from dispatch.rig.registry import FakeRegistry, Strangers
from dispatch.rig.rows import write_row
from registry.clock import Clock
from registry.errors import RegistryUnreadable
from registry.processes import Processes
from registry.record import replace
from registry.rows import (
    REASONS,
    Listing,
    Row,
    Skipped,
    check_row,
    key_of,
    parse_row,
    probe,
    read_rows,
    row_of,
    rows_with,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parents[1] / "golden" / "claude-code-2.1.332"


class Mending(Clock):
    """A clock whose sleep is when the row is written to its end."""

    def __init__(self, mend: Any = None):
        self.slept: list[float] = []
        self._mend = mend

    def sleep(self, seconds: float) -> None:
        """Note the wait and mend what was torn."""
        self.slept.append(seconds)
        if self._mend is not None:
            self._mend()


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[FakeRegistry]:
    """An empty registry."""
    with FakeRegistry(str(tmp_path)) as fake:
        yield fake


def reasons(listing: Listing) -> list[str]:
    """The reasons of *listing*, in its order."""
    return [skip.reason for skip in listing.skipped]


def test_a_running_session_is_one_row(registry: FakeRegistry) -> None:
    """Every field of the row arrives under its name."""
    made = registry.add(status="waiting", waitingFor="permission prompt", name="fable")

    listing = read_rows(registry.claude_dir, registry.processes)

    expected = Row(
        file=f"{made.pid}.json",
        pid=made.pid,
        session_id=made.session_id,
        name="fable",
        status="waiting",
        cwd="/home/u/fable",
        socket=made.socket,
        proc_start=made.row["procStart"],
        started_at=made.row["startedAt"],
        status_at=made.row["statusUpdatedAt"],
        waiting_for="permission prompt",
        version="2.1.332",
        entrypoint="cli",
        pid_domain=made.row["pidDomain"],
    )
    assert Listing((expected,), ()) == listing


@pytest.mark.parametrize("recorded", sorted(GOLDEN.glob("registry-row-*.json")))
def test_recorded_rows_are_rows(recorded: Path) -> None:
    """What the real binary wrote parses, and is found dead on this machine."""
    content = recorded.read_bytes()
    pid = 4203 if "headless" in recorded.name else 4201

    row = parse_row(f"{pid}.json", content)

    assert isinstance(row, Row)
    assert pid == row.pid
    foreign = check_row(row, Processes())
    assert foreign is not None
    assert foreign.reason == "foreign-domain"


@pytest.mark.parametrize("damage", sorted(set(DAMAGES) - {"refused"}))
def test_each_damage_is_skipped_with_its_reason(registry: FakeRegistry, damage: str) -> None:
    """A damaged row is skipped under the word for its damage; its neighbour stays."""
    whole = registry.add()
    registry.add(damage=damage)

    listing = read_rows(registry.claude_dir, registry.processes, Mending())

    assert [whole.pid] == [row.pid for row in listing.rows]
    assert [damage] == reasons(listing)
    assert damage in REASONS


def test_a_foreign_owned_socket_is_skipped(registry: FakeRegistry) -> None:
    """A socket of another user is nobody's door."""
    made = registry.add()

    listing = read_rows(registry.claude_dir, Strangers())

    skip = Skipped(f"{made.pid}.json", "foreign-owner", made.pid, made.session_id)
    assert Listing((), (skip,)) == listing


def test_a_dead_session_keeps_its_id_in_the_listing(registry: FakeRegistry) -> None:
    """The reason says that it ended, the id says which one."""
    made = registry.add(registry.ended())

    listing = read_rows(registry.claude_dir, registry.processes)

    skip = Skipped(f"{made.pid}.json", "no-process", made.pid, made.session_id)
    assert (skip,) == listing.skipped


def test_two_rows_with_one_id_are_both_listed(registry: FakeRegistry) -> None:
    """Choosing between them is not the registry's."""
    first = registry.add()
    second = registry.add(sessionId=first.session_id)

    listing = read_rows(registry.claude_dir, registry.processes)

    assert sorted([first.pid, second.pid]) == [row.pid for row in listing.rows]
    assert {first.session_id} == {row.session_id for row in listing.rows}


def test_no_folder_is_no_rows(tmp_path: Path) -> None:
    """A machine without Claude Code has an empty listing."""
    assert Listing((), ()) == read_rows(str(tmp_path / "none"), Processes())


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A folder that cannot be listed is no empty folder."""
    (tmp_path / "sessions").write_text("")

    with pytest.raises(RegistryUnreadable) as caught:
        read_rows(str(tmp_path), Processes())

    assert f"{tmp_path}/sessions" == caught.value.path
    assert f"{tmp_path}/sessions: Not a directory" == str(caught.value)


def test_odd_things_among_the_rows_never_hang(registry: FakeRegistry) -> None:
    """Pipes, folders, sockets, devices, circles and dangling links are skipped at once."""
    folder = Path(registry.sessions)
    os.mkfifo(folder / "11.json")
    (folder / "12.json").mkdir()
    (folder / "13.json").symlink_to(folder / "nowhere")
    (folder / "14.json").symlink_to(folder / "14.json")
    (folder / "15.json").symlink_to("/dev/zero")
    os.rename(registry.add().socket, folder / "16.json")
    (folder / "notes.txt").write_text("not a row")
    made = registry.add()

    started = time.monotonic()
    listing = read_rows(registry.claude_dir, registry.processes)

    assert time.monotonic() - started < 2
    assert [made.pid] == [row.pid for row in listing.rows]
    odd = [skip for skip in listing.skipped if skip.reason == "not-a-file"]
    assert [skip.pid for skip in odd] == [11, 12, 13, 14, 15, 16]


@pytest.mark.parametrize(
    "name",
    [
        "x.json",
        "0.json",
        "007.json",
        "-1.json",
        ".json",
        "\N{ARABIC-INDIC DIGIT THREE}.json",
        "9" * 11 + ".json",
    ],
)
def test_a_file_not_named_after_a_pid_is_no_row(registry: FakeRegistry, name: str) -> None:
    """Only a plain positive number names a process."""
    write_row(f"{registry.sessions}/{name}", {"pid": 7, "sessionId": None})

    listing = read_rows(registry.claude_dir, registry.processes)

    assert (Skipped(name, "name-mismatch", None, None),) == listing.skipped


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pid": True}, "name-mismatch"),
        ({"pid": "7"}, "name-mismatch"),
        ({"sessionId": "not-a-uuid"}, "no-session-id"),
        ({"messagingSocketPath": None}, "no-socket"),
        ({"messagingSocketPath": "relative.sock"}, "no-socket"),
        ({"messagingSocketPath": "/a\0b"}, "no-socket"),
        ({"messagingSocketPath": ["/a"]}, "no-socket"),
    ],
)
def test_wrong_fields_have_their_reasons(
    registry: FakeRegistry, changes: dict[str, Any], reason: str
) -> None:
    """A field of another type or form is as good as absent."""
    made = registry.add()
    write_row(made.file, made.row | changes)

    assert [reason] == reasons(read_rows(registry.claude_dir, registry.processes))


def test_optional_fields_of_another_type_are_unknown(registry: FakeRegistry) -> None:
    """What is not known is None, never guessed."""
    odd: dict[str, Any] = {"name": 5, "status": None, "cwd": [], "startedAt": True}
    registry.add(**odd, statusUpdatedAt=1.5, version={}, pidDomain=None)

    (row,) = read_rows(registry.claude_dir, registry.processes).rows

    found = (row.name, row.status, row.cwd, row.started_at, row.status_at, row.version)
    assert found == (None,) * 6


def test_half_a_surrogate_pair_in_a_name_can_be_printed() -> None:
    """A name that no terminal can take is made printable; other text is untouched."""
    content = b'{"pid":7,"sessionId":"388e03f6000040008000000000000001","name":"a\\ud800\\u00e9",'
    content += b'"messagingSocketPath":"/tmp/x"}'

    row = parse_row("7.json", content)

    assert isinstance(row, Row)
    assert row.name == "a?é"
    assert row.session_id == "388e03f6-0000-4000-8000-000000000001"


def test_of_a_key_written_twice_the_later_counts() -> None:
    """The reading is the writer's own: JSON.parse does the same."""
    content = b'{"pid":8,"pid":7,"sessionId":"388e03f6-0000-4000-8000-000000000001",'
    content += b'"messagingSocketPath":"/tmp/x"}'

    assert isinstance(parse_row("7.json", content), Row)


def test_a_row_caught_while_it_is_rewritten_is_read_again(registry: FakeRegistry) -> None:
    """A living session does not vanish because its row was half written for a moment."""
    made = registry.add(damage="torn")
    clock = Mending(lambda: write_row(made.file, made.row))

    listing = read_rows(registry.claude_dir, registry.processes, clock)

    assert [made.pid] == [row.pid for row in listing.rows]
    assert clock.slept == [0.005]


def test_a_torn_row_of_a_dead_process_is_not_waited_for(registry: FakeRegistry) -> None:
    """Patience is for the living: thousands of stale halves cost nothing."""
    registry.add(registry.ended(), damage="torn")
    clock = Mending()

    listing = read_rows(registry.claude_dir, registry.processes, clock)

    assert reasons(listing) == ["torn"]
    assert clock.slept == []


def test_patience_with_a_torn_row_ends(registry: FakeRegistry) -> None:
    """A row that stays torn is skipped after a few looks."""
    registry.add(damage="torn")
    clock = Mending()

    listing = read_rows(registry.claude_dir, registry.processes, clock)

    assert reasons(listing) == ["torn"]
    assert clock.slept == [0.005] * 3


def test_a_needle_finds_its_rows_and_no_other(registry: FakeRegistry) -> None:
    """Only rows that hold one of the needles come back."""
    wanted, named, _ = registry.add(), registry.add(name="fable"), registry.add()

    listing = rows_with(
        registry.claude_dir, (wanted.session_id.encode(), b'"fable"'), registry.processes
    )

    assert sorted([wanted.pid, named.pid]) == [row.pid for row in listing.rows]
    assert listing.skipped == ()


def test_a_needle_search_passes_over_the_dead_and_mends_the_torn(registry: FakeRegistry) -> None:
    """A half row may hold the needle in its missing half, so it is read again."""
    torn = registry.add(damage="torn", name="needle")
    registry.add(registry.ended(), name="needle")
    (Path(registry.sessions) / "x.json").write_text("needle")
    clock = Mending(lambda: write_row(torn.file, torn.row))

    listing = rows_with(registry.claude_dir, (b"needle",), registry.processes, clock)

    assert Listing((listing.rows[0],), ()) == listing
    assert torn.pid == listing.rows[0].pid


def test_one_file_can_be_asked_for_by_its_pid(registry: FakeRegistry) -> None:
    """The row, the reason, or None where no such file is."""
    made, gone = registry.add(), registry.add(damage="recycled")
    pipe = registry.add(damage="not-a-file")

    def ask(pid: int) -> Row | Skipped | None:
        return row_of(registry.claude_dir, pid, registry.processes)

    assert read_rows(registry.claude_dir, registry.processes).rows == (ask(made.pid),)
    assert Skipped(f"{gone.pid}.json", "recycled", gone.pid, gone.session_id) == ask(gone.pid)
    assert Skipped(f"{pipe.pid}.json", "not-a-file", pipe.pid) == ask(pipe.pid)
    assert ask(1) is None


def test_where_start_times_do_not_compare_a_living_pid_is_enough(registry: FakeRegistry) -> None:
    """On macOS the row's spelling is not ours; the door still asks for the peer's pid."""

    class Elsewhere(Processes):
        def domain(self) -> str | None:
            return None

        def comparable(self) -> bool:
            return False

    made = registry.add(damage="recycled")

    listing = read_rows(registry.claude_dir, Elsewhere())

    assert [made.pid] == [row.pid for row in listing.rows]


def test_a_row_without_a_domain_is_judged_by_its_start_time(registry: FakeRegistry) -> None:
    """Nothing contradicts it, and the start time still has to agree."""
    made = registry.add(drop=("pidDomain",))

    listing = read_rows(registry.claude_dir, registry.processes)

    assert [made.pid] == [row.pid for row in listing.rows]


def test_a_path_that_cannot_be_one_has_no_socket(registry: FakeRegistry) -> None:
    """The check is total for rows that were not parsed here."""
    registry.add()
    (row,) = read_rows(registry.claude_dir, registry.processes).rows

    faults = [
        check_row(replace(row, socket=path), registry.processes)
        for path in ("/a\0b", "/" + "x" * 5000, "/etc/passwd/x")
    ]

    assert [fault and fault.reason for fault in faults] == ["no-socket"] * 3


def test_a_probe_tells_a_listener_from_a_leftover(registry: FakeRegistry) -> None:
    """Only a socket with a listener behind it is a door."""
    alive, dead = registry.add(), registry.add(damage="refused")

    found = {row.pid: probe(row) for row in read_rows(registry.claude_dir, Processes()).rows}

    assert {alive.pid: True, dead.pid: False} == found


def test_a_probe_writes_nothing(registry: FakeRegistry) -> None:
    """The listener sees one connection that ends without a byte."""
    made = registry.add()
    assert made.listener is not None
    seen: list[bytes] = []

    def listen(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            seen.append(connection.recv(10))

    listening = threading.Thread(target=listen, args=(made.listener,))
    listening.start()
    (row,) = read_rows(registry.claude_dir, registry.processes).rows
    assert probe(row)
    listening.join(10)

    assert seen == [b""]


def test_a_listener_with_a_full_queue_listens(registry: FakeRegistry) -> None:
    """Slow is not gone, and the probe does not wait for it."""
    made = registry.add()
    assert made.listener is not None
    made.listener.listen(0)
    (row,) = read_rows(registry.claude_dir, registry.processes).rows
    waiting = []
    for _ in range(4):
        waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        waiting[-1].setblocking(False)
        waiting[-1].connect_ex(made.socket)

    found = probe(row)
    for one in waiting:
        one.close()

    assert found is True


def test_the_key_of_a_row_is_its_token(registry: FakeRegistry) -> None:
    """The token is found by the socket's path."""
    made = registry.add()
    (row,) = read_rows(registry.claude_dir, registry.processes).rows

    assert made.token == key_of(registry.claude_dir, row)


@pytest.mark.parametrize(
    "fields",
    [{"procStart": "1"}, {"peerToken": ""}, {"peerToken": 5}, {"procStart": None}],
)
def test_an_odd_or_older_key_is_not_taken(registry: FakeRegistry, fields: dict[str, Any]) -> None:
    """A key that another process left is worth no more than none."""
    made = registry.add()
    (row,) = read_rows(registry.claude_dir, registry.processes).rows
    registry.write_key(made.pid, made.socket, made.token, **fields)

    assert key_of(registry.claude_dir, row) is None


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{", b"\xff", b"[" * 4000, b" " * 5000])
def test_no_key_is_no_token(registry: FakeRegistry, content: bytes | None) -> None:
    """A missing or broken key file never stops a kiss."""
    made = registry.add()
    (row,) = read_rows(registry.claude_dir, registry.processes).rows
    file = Path(registry.write_key(made.pid, made.socket, made.token))
    file.unlink()
    if content is not None:
        file.write_bytes(content)

    assert key_of(registry.claude_dir, row) is None


def test_thousands_of_stale_rows_hide_nobody(registry: FakeRegistry) -> None:
    """One living session among 5,000 dead ones is found, and fast."""
    made = registry.add()
    for pid in range(3_000_000_000, 3_000_005_000):
        write_row(f"{registry.sessions}/{pid}.json", made.row | {"pid": pid, "name": "old"})

    started = time.monotonic()
    whole = read_rows(registry.claude_dir, registry.processes)
    middle = time.monotonic()
    part = rows_with(registry.claude_dir, (made.session_id.encode(),), registry.processes)
    ended = time.monotonic()

    assert [made.pid] == [row.pid for row in whole.rows]
    assert reasons(whole) == ["no-process"] * 5000
    assert whole.rows == part.rows
    assert middle - started < 10
    assert ended - middle < 5


@pytest.mark.parametrize(
    ("pid", "path", "reason"),
    [
        ("true", "/s", "name-mismatch"),
        ("1.0", "/s", "name-mismatch"),
        ("1", "/a\\u0000b", "no-socket"),
        ("1", "s", "no-socket"),
    ],
)
def test_what_only_equals_a_pid_or_a_path_is_none(pid: str, path: str, reason: str) -> None:
    """True is not process 1, and no path holds a NUL; the parser alone says so."""
    content = f'{{"pid":{pid},"sessionId":"388e03f6-0000-4000-8000-000000000001",'
    content += f'"messagingSocketPath":"{path}"}}'

    found = parse_row("1.json", content.encode())

    assert isinstance(found, Skipped)
    assert reason == found.reason


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_trouble_of_our_own_is_no_ended_session(registry: FakeRegistry, number: int) -> None:
    """Out of descriptors, nobody can be called ended: the reading fails as a whole."""

    class Starved(Processes):
        def start_token(self, _pid: int) -> str | None:
            raise OSError(number, os.strerror(number))

    registry.add()
    with pytest.raises(RegistryUnreadable, match=re.escape(os.strerror(number))):
        read_rows(registry.claude_dir, Starved())


def test_a_row_that_only_we_cannot_open_is_not_skipped(registry: FakeRegistry) -> None:
    """With no descriptor left for the row, its session runs all the same."""
    registry.add()
    code = (
        "import resource, sys\n"
        "from registry.errors import RegistryUnreadable\n"
        "from registry.processes import Processes\n"
        "from registry.rows import read_rows\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n"
        "try:\n"
        f"    print(read_rows({registry.claude_dir!r}, Processes()))\n"
        "except RegistryUnreadable as error:\n"
        "    print(error.why)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert os.strerror(errno.EMFILE) == said.stdout.strip()
