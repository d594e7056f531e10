"""The file of events: read once, read on, and read afresh whenever it is not the same."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock

from registry import ledger_file as module
from registry.ledger import LONGEST_LINE, Ledger, fold
from registry.ledger_file import Cutter, Reading, read_ledger
from tests.fakes.events import NOW, a_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Enough to be worth a memory.
LINES = [a_line(f"TK-{n}", "create", NOW - 9000 + n, note="x" * 500) for n in range(500)]
BULK = b"".join(line + b"\n" for line in LINES)
FIRST, MIDDLE, LAST = b'"TK-0"', b'"TK-250"', b'"TK-499"'


class Place:
    """A ledger, the state folder beside it, and what a look without memory says."""

    def __init__(self, folder: Path):
        self.path, self.state = folder / "events.jsonl", folder / "state"
        self.state.mkdir(0o700)
        self.memory = self.state / "ledger.json"

    def read(self, now: float = NOW, correlation: str | None = None) -> dict[str, Any]:
        """What a look with the memory says."""
        reading = read_ledger(str(self.path), str(self.memory), now, correlation)
        assert Reading(reading.ledger, str(self.path), None, absent=False) == reading
        return vars(reading.ledger)

    def fresh(self, now: float = NOW, correlation: str | None = None) -> dict[str, Any]:
        """What all lines say that stand there."""
        ledger = Ledger()
        *lines, rest = self.path.read_bytes().split(b"\n")
        pattern = correlation and re.compile(correlation)
        fold(ledger, lines + ([rest] if rest else []), now, pattern or None)
        return vars(ledger)

    def append(self, content: bytes) -> None:
        """*content* at the end of the ledger."""
        with self.path.open("ab") as file:
            file.write(content)

    def remembered(self) -> dict[str, Any]:
        """The memory as it is kept."""
        found: dict[str, Any] = json.loads(self.memory.read_bytes())
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A ledger that was read once."""
    made = Place(tmp_path)
    made.append(BULK)
    assert made.fresh() == made.read()
    return made


def swap(path: Path, old: bytes, new: bytes) -> None:
    """*new* in place of *old*, as long, in the same file."""
    assert len(old) == len(new)
    content = path.read_bytes()
    assert content.count(old) == 1
    with path.open("r+b") as file:
        file.write(content.replace(old, new))


def test_no_file_is_an_empty_ledger(tmp_path: Path) -> None:
    """Absent, not blind, and nothing is made."""
    reading = read_ledger(str(tmp_path / "no" / "file"), str(tmp_path / "memory"), NOW, None)

    assert (None, True) == (reading.blind, reading.absent)
    assert vars(Ledger()) == vars(reading.ledger)
    assert [] == list(tmp_path.iterdir())


def a_socket(path: Path) -> None:
    """A socket at *path*."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)  # the working folder is its own: socket paths are short


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (os.mkdir, "is not a plain file"),
        (os.mkfifo, "is not a plain file"),
        (lambda path: path.symlink_to("/dev/null"), "is not a plain file"),
        (lambda path: path.symlink_to(path), "cannot be read: "),
        (a_socket, "cannot be read: "),
    ],
    ids=["folder", "pipe", "device", "circle", "socket"],
)
def test_what_is_no_file_is_told_and_never_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path], None], why: str
) -> None:
    """Blind is another thing than absent."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "events.jsonl"
    plant(path)

    reading = read_ledger(str(path), None, NOW, None)

    assert str(reading.blind).startswith(why)
    assert (False, 0) == (reading.absent, reading.ledger.lines)


def test_a_path_through_a_file_is_told(tmp_path: Path) -> None:
    """A file where the folder should be is a mistake, not an absence."""
    (tmp_path / "file").touch()

    reading = read_ledger(str(tmp_path / "file" / "events.jsonl"), None, NOW, None)

    assert ("cannot be read: Not a directory", False) == (reading.blind, reading.absent)


def test_a_link_is_followed(place: Place, tmp_path: Path) -> None:
    """A home may be put together of links."""
    link = tmp_path / "link"
    link.symlink_to(place.path)

    reading = read_ledger(str(link), None, NOW, None)

    assert place.fresh() == vars(reading.ledger)


def test_the_memory_is_private_and_used(place: Place) -> None:
    """The same answer, and what lies before the place is not read again."""
    assert place.memory.stat().st_mode & 0o777 == 0o600
    swap(place.path, MIDDLE, b'"TK-XYZ"')
    place.append(a_line("TK-900", "create") + b"\n")

    found = place.read()

    assert {"TK-250", "TK-900"} <= found["known"]
    assert (501, {}) == (found["lines"], found["skipped"])


@pytest.mark.parametrize(
    ("ticket", "other"), [(FIRST, b'"TK-X"'), (LAST, b'"TK-XYZ"')], ids=["first", "last"]
)
def test_another_edge_is_another_file(place: Place, ticket: bytes, other: bytes) -> None:
    """The beginning and the end before the place are looked at."""
    swap(place.path, ticket, other)

    assert place.fresh() == place.read()


def test_a_truncated_file_is_read_afresh(place: Place) -> None:
    """Also when it grows again, to more than it was."""
    place.path.write_bytes(BULK[: len(BULK) // 2])
    assert place.fresh() == place.read()
    place.path.write_bytes(BULK.replace(FIRST, b'"TK-X"') + BULK)

    assert place.fresh() == place.read()


def test_a_rotated_file_is_read_afresh(place: Place, tmp_path: Path) -> None:
    """Another file under the name, even if its edges are the same and it has grown."""
    other = tmp_path / "other"
    other.write_bytes(BULK.replace(MIDDLE, b'"TK-XYZ"') + a_line("TK-9") + b"\n")
    other.replace(place.path)

    assert "TK-250" not in place.read()["known"]
    assert place.fresh() == place.read()


def test_another_path_is_read_afresh(place: Place, tmp_path: Path) -> None:
    """The memory knows which file it is of, by name too."""
    other = tmp_path / "other"
    os.link(place.path, other)
    swap(place.path, MIDDLE, b'"TK-XYZ"')

    reading = read_ledger(str(other), str(place.memory), NOW, None)

    assert "TK-250" not in reading.ledger.known


def test_another_pattern_reads_afresh(place: Place) -> None:
    """What a correlation names was folded with the old one."""
    place.path.write_bytes(a_line("TK-1", correlation_id="job/7") + b"\n" + BULK)
    assert {} == place.read()["pids"]

    found = place.read(correlation=r"job/(\d+)")

    assert {7: (NOW, 1, "TK-1")} == found["pids"]
    assert place.fresh() == place.read(correlation="")


def test_a_little_more_is_not_worth_a_memory(place: Place) -> None:
    """It is read again; when it has grown to enough, the memory is written."""
    before = place.memory.read_bytes()
    place.append(a_line("TK-900", "create") + b"\n")
    assert place.fresh() == place.read()
    assert before == place.memory.read_bytes()

    place.append(BULK)

    assert place.fresh() == place.read()
    assert place.path.stat().st_size == place.remembered()["offset"]


def test_a_small_file_needs_no_memory(tmp_path: Path) -> None:
    """Nothing is written for it."""
    place = Place(tmp_path)
    place.append(LINES[0] + b"\n")

    assert place.fresh() == place.read()
    assert [] == list(place.state.iterdir())


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_last_line_without_its_end_counts_if_it_is_whole(place: Place, end: bytes) -> None:
    """T04: a create as the last line binds, ended or not."""
    place.append(a_line("TK-900", "create") + end)

    assert "TK-900" in place.read()["known"]


def test_a_growing_last_line_is_not_remembered(tmp_path: Path) -> None:
    """Half of it is torn for this answer; the whole counts once, under its own number."""
    place = Place(tmp_path)
    line = a_line("TK-900", "create")
    place.append(BULK + line[:30])
    assert ({"torn": 1}, 501) == (place.read()["skipped"], place.read()["lines"])
    assert len(BULK) == place.remembered()["offset"]

    place.append(line[30:])

    found = place.read()
    assert ({}, 501, (NOW, 501, "TK-900")) == (
        found["skipped"],
        found["lines"],
        found["agents"]["claude@pane"],
    )


def test_a_line_that_is_too_long_is_skipped_over_several_looks(tmp_path: Path) -> None:
    """One line, counted once; the memory says that we are inside of it."""
    place = Place(tmp_path)
    place.append(BULK + b'{"id": "' + b"x" * LONGEST_LINE)
    for _ in range(3):
        assert ({"too-long": 1}, 501) == (place.read()["skipped"], place.read()["lines"])
        assert place.remembered()["inside"] is True
        place.append(b"y" * (LONGEST_LINE // 2))
    place.append(b'"}\n' + a_line("TK-900", "create"))

    found = place.read()

    assert ({"too-long": 1}, 502) == (found["skipped"], found["lines"])
    assert "TK-900" in found["known"]
    assert place.fresh() == found


def test_nothing_longer_than_a_line_is_held() -> None:
    """However long the line: what is kept of it is bounded."""
    cutter = Cutter()
    held, told = 0, 0
    for _ in range(40):
        told += len(cutter.cut(b"x" * (1 << 18)))
        held = max(held, len(cutter.rest))

    assert (1, True) == (told, held <= LONGEST_LINE)
    assert [b"y"] == cutter.cut(b"x\ny\nz")
    assert (b"z", 40 * (1 << 18) + 4) == (cutter.rest, cutter.offset)


def test_what_lies_ahead_is_remembered_and_judged_again(place: Place) -> None:
    """It binds when its time has come, though its line is not read again."""
    place.append(a_line("TK-900", "create", NOW + 3600, correlation_id="7") + b"\n" + BULK)
    assert "TK-900" not in place.read()["known"]
    assert place.path.stat().st_size == place.remembered()["offset"]

    assert "TK-900" in place.read(NOW + 3600)["known"]
    assert place.fresh(NOW + 3600) == place.read(NOW + 3600)


def test_what_a_fast_clock_took_is_looked_at_again(place: Place) -> None:
    """The clock was put back: what it took too early lies ahead, as without a memory."""
    place.append(a_line("TK-900", "create", NOW + 3600) + b"\n" + BULK)
    assert "TK-900" in place.read(NOW + 3600)["known"]

    assert "TK-900" not in place.read()["known"]
    assert place.fresh() == place.read()


def test_too_much_ahead_is_not_remembered(place: Place) -> None:
    """What could not be set aside is found again when its time has come."""
    before = place.memory.read_bytes()
    lines = (a_line(f"TK-{n}", "create", NOW + 3600) + b"\n" for n in range(1000, 11_001))
    place.append(b"".join(lines))

    assert {"ahead": 1} == place.read()["skipped"]
    assert before == place.memory.read_bytes()
    assert 10_501 == len(place.read(NOW + 3600)["known"])


def odd(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The memory with *changes*."""
    return lambda found: found | changes


def odd_ledger(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The memory with *changes* to the ledger in it."""
    return lambda found: with_ledger(found, **changes)


def with_ledger(found: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """*found* with *changes* to the ledger in it, and the sum that fits them."""
    told = json.dumps(json.loads(found["ledger"]) | changes)
    return found | {"ledger": told, "sum": hashlib.sha256(told.encode()).hexdigest()}


# One entry each that nobody could have made, besides one that is right.
AGENTS = ["a"], [NOW], [1], ["TK-1"]
EVENT = [NOW], [1], ["TK-1"], [True], [None], [None]


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,
        lambda _: [],
        lambda found: {name: value for name, value in found.items() if name != "ledger"},
        odd(origin=None),
        odd(offset=-1),
        odd(offset=True),
        odd(offset=1.0),
        odd(offset=len(BULK) + 1),
        odd(offset=len(BULK) - 1),
        odd(inside=None),
        odd(digest=None),
        odd(ledger=None),
        odd(ledger={}),
        odd(ledger="{}"),
        lambda found: found | {"ledger": found["ledger"].replace("TK-1", "TK-2", 1)},
        odd_ledger(more=1),
        odd_ledger(known=None),
        odd_ledger(known="TK-1"),
        odd_ledger(known={"TK-1": 1}),
        odd_ledger(known=["tk-1"]),
        odd_ledger(known=[["TK-1"]]),
        odd_ledger(known=[1]),
        odd_ledger(agents=None),
        odd_ledger(agents=[]),
        odd_ledger(agents=AGENTS[:3]),
        odd_ledger(agents=[[1], *AGENTS[1:]]),
        odd_ledger(agents=[["a", "b"], *AGENTS[1:]]),
        odd_ledger(agents=[AGENTS[0], [1], *AGENTS[2:]]),
        odd_ledger(agents=[AGENTS[0], [float("nan")], *AGENTS[2:]]),
        odd_ledger(agents=[*AGENTS[:2], [True], AGENTS[3]]),
        odd_ledger(agents=[*AGENTS[:3], ["no ticket"]]),
        odd_ledger(pids=AGENTS),
        odd_ledger(ahead=AGENTS),
        odd_ledger(ahead=[*EVENT[:3], [1], *EVENT[4:]]),
        odd_ledger(ahead=[*EVENT[:4], [1], EVENT[5]]),
        odd_ledger(ahead=[*EVENT[:5], ["1"]]),
        odd_ledger(lines="1"),
        odd_ledger(lines=None),
        odd_ledger(latest=1),
        odd_ledger(latest=float("inf")),
        odd_ledger(skipped={"torn": 1}),
        odd_ledger(skipped=[["torn"], [1.0]]),
        odd_ledger(skipped=[["why"], [1]]),
    ],
)
def test_a_memory_that_is_odd_is_not_taken(
    place: Place, change: Callable[[dict[str, Any]], Any]
) -> None:
    """All is read afresh, and the memory is a good one again."""
    good = place.remembered()
    place.memory.write_text(json.dumps(change(good)))

    assert place.fresh() == place.read()
    assert good == place.remembered()


def test_every_prefix_of_a_memory_is_ignored(place: Place) -> None:
    """A torn one, or one of another kind, changes no answer."""
    whole = place.memory.read_bytes()
    for content in (b"", whole[:-1], whole[: len(whole) // 2], b"\xff" + whole, b"[" * 100_000):
        place.memory.write_bytes(content)

        assert place.fresh() == place.read()


def test_a_memory_of_another_format_is_not_taken(place: Place) -> None:
    """Whatever stands in it: a later zdo may mean another thing."""
    found = with_ledger(place.remembered(), known=[])
    found["origin"][0] += 1
    place.memory.write_text(json.dumps(found))

    assert place.fresh() == place.read()


def test_a_correction_in_place_is_noticed(place: Place) -> None:
    """As many bytes for others, far from both edges, and nothing added."""
    content = place.path.read_bytes()
    place.read()
    middle = content.index(b"TK-", len(content) // 2)
    with place.path.open("r+b") as file:
        file.seek(middle)
        file.write(b"XX")
    os.utime(place.path, ns=(1, 1))

    assert place.fresh() == place.read()


def test_a_state_folder_is_never_made(tmp_path: Path) -> None:
    """Nothing is kept where zdo has not been yet."""
    place = Place(tmp_path)
    place.append(BULK)
    place.state.rmdir()

    assert place.fresh() == place.read()
    assert not place.state.exists()


def test_a_folder_that_others_may_write_is_not_trusted(place: Place) -> None:
    """Its memory is neither taken nor written."""
    found = with_ledger(place.remembered(), known=[])
    place.memory.write_text(planted := json.dumps(found))
    assert set() == place.read()["known"]  # in a folder of ours it would be taken
    place.state.chmod(0o777)

    assert place.fresh() == place.read()
    assert planted == place.memory.read_text()


def test_without_a_memory_nothing_is_written(place: Place, tmp_path: Path) -> None:
    """None is a choice."""
    before = sorted(tmp_path.rglob("*"))

    reading = read_ledger(str(place.path), None, NOW, None)

    assert place.fresh() == vars(reading.ledger)
    assert before == sorted(tmp_path.rglob("*"))


def test_another_writer_only_costs_time(place: Place) -> None:
    """While its lock is held the answer is the same and the memory stands."""
    before = place.memory.read_bytes()
    place.append(BULK)
    with FileLock(f"{place.memory}.lock"):
        assert place.fresh() == place.read()

    assert before == place.memory.read_bytes()


def test_a_memory_that_cannot_be_written_changes_no_answer(place: Place) -> None:
    """A folder stands in its place."""
    place.memory.unlink()
    place.memory.mkdir()

    assert place.fresh() == place.read()


def test_the_size_at_the_opening_is_the_end(place: Place) -> None:
    """A busy writer cannot keep us, and a file that shrinks meanwhile ends where it ends."""
    with place.path.open("rb") as file:
        source = module._Source(file.fileno(), str(place.path), None)
        place.append(BULK)
        assert BULK == b"".join(source.blocks(0))
        place.path.write_bytes(BULK[:10])
        assert BULK[:10] == b"".join(source.blocks(0))


def test_a_file_that_is_rewritten_while_it_is_read_is_not_remembered_as_read(place: Place) -> None:
    """Its beginning is taken before the rest, so that the next look sees another file."""
    with place.path.open("rb") as file:
        before = module._Source(file.fileno(), str(place.path), None)
        swap(place.path, FIRST, b'"TK-X"')
        after = module._Source(file.fileno(), str(place.path), None)

        assert before.digest(len(BULK)) != after.digest(len(BULK))
