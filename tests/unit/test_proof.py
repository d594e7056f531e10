"""Permit, intent, receipt: exactly one wins, and what is left is readable or named."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from carrier import proof
from carrier.envelope import to_bytes
from carrier.errors import EnvelopeTorn
from carrier.proof import (
    Notice,
    TornReceipt,
    issue,
    leave_receipt,
    parse_receipt,
    peek,
    read_receipt,
    read_round,
    take,
    withdraw,
    withdraw_all,
    write_round,
)
from registry.record import fields
from tests.fakes.envelopes import DELIVERY, a_receipt, a_round, an_envelope
from tests.fakes.evidence import OTHER

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
TAKER = """
import sys
from carrier.proof import take
for line in sys.stdin:
    folder = line.rstrip("\\n")
    print(int(take(folder) is not None), flush=True)
"""


def test_a_permit_is_taken_once(tmp_path: Path) -> None:
    """The second run of a wrapper finds nothing to do."""
    issue(str(tmp_path), an_envelope())

    assert an_envelope() == take(str(tmp_path))
    assert take(str(tmp_path)) is None
    assert os.listdir(tmp_path) == [proof.INTENT]


def test_an_intent_that_cannot_be_flushed_is_none(tmp_path: Path) -> None:
    """It might not survive a power cut, so nothing is written, and that is provable."""
    issue(str(tmp_path), an_envelope())
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from carrier import proof\n"
        "def refuse(_): raise OSError(28, 'full')\n"
        "proof.sync_folder = refuse\n"
        "try:\n"
        f"    proof.take({str(tmp_path)!r})\n"
        "except OSError as error:\n"
        "    print(error.errno)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)

    assert said.stdout == b"28\n"
    assert withdraw(str(tmp_path))


def test_a_withdrawn_permit_cannot_be_taken(tmp_path: Path) -> None:
    """Once withdrawn, the door stays untouched for ever."""
    issue(str(tmp_path), an_envelope())

    assert withdraw(str(tmp_path))
    assert take(str(tmp_path)) is None
    assert withdraw(str(tmp_path))
    assert os.listdir(tmp_path) == [proof.WITHDRAWN]


def test_a_withdrawn_permit_keeps_its_bytes(tmp_path: Path) -> None:
    """It is the evidence: what was withdrawn can be read afterwards."""
    issue(str(tmp_path), an_envelope())
    withdraw(str(tmp_path))

    assert to_bytes(an_envelope()) == (tmp_path / proof.WITHDRAWN).read_bytes()


@pytest.mark.parametrize("left", [None, (), (proof.SETTINGS,), (proof.SETTINGS, proof.RECEIPT)])
def test_a_folder_that_lost_its_files_proves_nothing(
    tmp_path: Path, left: tuple[str, ...] | None
) -> None:
    """No permit, no intent and no withdrawn one, or no folder: nobody can tell, so it is doubt."""
    folder = tmp_path / "attempt"
    if left is not None:
        folder.mkdir()
        for name in left:
            (folder / name).touch()

    assert not withdraw(str(folder))
    assert not withdraw(str(folder))
    assert left is None or sorted(left) == sorted(os.listdir(folder))


@pytest.mark.parametrize("more", [(), (proof.PERMIT,)])
def test_an_intent_beside_a_withdrawn_permit_is_doubt(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    """No history of ours has both; what may have touched the door counts."""
    for name in (proof.INTENT, proof.WITHDRAWN, *more):
        (tmp_path / name).touch()

    assert not withdraw(str(tmp_path))


def test_a_taken_permit_cannot_be_withdrawn(tmp_path: Path) -> None:
    """The dispatcher learns that the door may have been touched, however often it asks."""
    issue(str(tmp_path), an_envelope())
    take(str(tmp_path))

    assert not withdraw(str(tmp_path))
    assert not withdraw(str(tmp_path))
    assert os.listdir(tmp_path) == [proof.INTENT]


def test_the_intent_is_as_old_as_its_taking(tmp_path: Path) -> None:
    """The keeper counts the wrapper's time from there, not from the permit."""
    issue(str(tmp_path), an_envelope())
    os.utime(tmp_path / proof.PERMIT, (1000, 1000))

    take(str(tmp_path))

    assert os.stat(tmp_path / proof.INTENT).st_mtime > 1000


def test_the_permit_is_for_the_owner_alone(tmp_path: Path) -> None:
    """It holds the line."""
    issue(str(tmp_path), an_envelope())

    assert os.stat(tmp_path / proof.PERMIT).st_mode & 0o777 == 0o600


def test_racing_takers_and_a_withdrawal_have_one_winner(tmp_path: Path) -> None:
    """Two wrappers and the dispatcher at once: one of the three, never two, never none."""
    won = [0, 0, 0]
    argv = [sys.executable, "-c", TAKER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with subprocess.Popen(argv, **pipes) as one, subprocess.Popen(argv, **pipes) as two:  # type: ignore[call-overload]
        # The first answers show that both have started.
        for taker in (one, two):
            taker.stdin.write(f"{tmp_path}\n")
            taker.stdin.flush()
            assert taker.stdout.readline() == "0\n"
        for round_ in range(300):
            folder = str(tmp_path / str(round_))
            os.mkdir(folder)
            issue(folder, an_envelope())
            for taker in (one, two)[:: 1 if round_ % 2 else -1]:
                taker.stdin.write(f"{folder}\n")
                taker.stdin.flush()
            for _ in range(round_ * 20):
                pass
            untouched = withdraw(folder)
            took = [int(taker.stdout.readline()) for taker in (one, two)]
            assert sum(took) + untouched == 1
            left = proof.WITHDRAWN if untouched else proof.INTENT
            assert [left] == os.listdir(folder)
            assert withdraw(folder) is untouched
            won = [a + b for a, b in zip(won, [*took, untouched], strict=True)]
        one.stdin.close()
        two.stdin.close()
    assert all((won[0] + won[1], won[2])), won


@pytest.mark.parametrize("withdrawn_first", range(9))
def test_withdrawing_and_taking_at_once_leave_no_gap(
    withdrawn_first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line is withdrawn first: what was taken in order are the first lines.

    The taker comes in after that many withdrawals, and takes all that it still may.
    """
    folders = [str(tmp_path / str(number)) for number in range(8)]
    for folder in folders:
        os.mkdir(folder)
        issue(folder, an_envelope())
    calls = itertools.count()

    def withdraw_beside_a_taker(folder: str) -> bool:
        if next(calls) == withdrawn_first:
            for each in folders:
                take(each)
        return withdraw(folder)

    monkeypatch.setattr(proof, "withdraw", withdraw_beside_a_taker)

    assert folders[: 8 - withdrawn_first] == withdraw_all(folders)


def test_of_many_those_that_nobody_took_are_withdrawn(tmp_path: Path) -> None:
    """The others are named, in their order."""
    folders = [str(tmp_path / str(number)) for number in range(4)]
    for folder in folders:
        os.mkdir(folder)
        issue(folder, an_envelope())
    take(folders[2])
    take(folders[0])

    assert [folders[0], folders[2]] == withdraw_all(folders)
    assert [] == withdraw_all([folders[3], folders[1]])
    assert [] == withdraw_all([])


def test_a_peek_takes_nothing(tmp_path: Path) -> None:
    """The permit stands, and its age is what it was."""
    issue(str(tmp_path), an_envelope())
    before = os.stat(tmp_path / proof.PERMIT)

    assert an_envelope() == peek(str(tmp_path))
    after = os.stat(tmp_path / proof.PERMIT)
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert an_envelope() == take(str(tmp_path))
    assert peek(str(tmp_path)) is None


@pytest.mark.parametrize("put", [lambda path: path.write_bytes(b"{"), os.mkfifo, os.mkdir])
def test_there_is_nothing_to_peek_at_in_a_permit_that_is_none(
    tmp_path: Path, put: Callable[[Path], object]
) -> None:
    """Torn, a pipe, a folder: no error."""
    put(tmp_path / proof.PERMIT)

    assert peek(str(tmp_path)) is None


NAMES = tuple(f"{each.delivery_id}.{number}" for number, each in enumerate(a_round(40)))


@pytest.mark.parametrize("names", [NAMES, NAMES[:1], (f"{DELIVERY}.{10**17}",), ()])
def test_a_round_survives(tmp_path: Path, names: tuple[str, ...]) -> None:
    """All names, in their order."""
    write_round(str(tmp_path), names)

    assert names == read_round(str(tmp_path))
    assert os.stat(tmp_path / proof.ROUND).st_mode & 0o777 == 0o600


def test_without_a_round_there_are_no_others(tmp_path: Path) -> None:
    """A lone line, or no folder at all."""
    assert read_round(str(tmp_path)) == ()
    assert read_round(f"{tmp_path}/gone") == ()


ODD = [
    "../x", f"../{DELIVERY}.1", f"{DELIVERY}.1/..", DELIVERY, f"{DELIVERY}.", f"{DELIVERY}.x",
    f"{DELIVERY}.-1", f"{DELIVERY}.\u0663", f"{DELIVERY.upper()}.1", f"{{{DELIVERY}}}.1", "",
    f" {DELIVERY}.1", f"{DELIVERY}.1 ", f"{DELIVERY}.1\r", f"{DELIVERY}.{10**18}", f"{OTHER}.1",
    f"{DELIVERY}.7.1", f"{DELIVERY}.7.new",
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("where", [0, 1])
def test_a_round_with_an_odd_name_is_none(tmp_path: Path, odd: str, where: int) -> None:
    """A name that is not exactly an attempt's, that stands twice, or is the lead's own."""
    lead = tmp_path / f"{OTHER}.1"
    lead.mkdir()
    names = [f"{DELIVERY}.7", f"{DELIVERY}.8"]
    names.insert(where * 2, odd)
    (lead / proof.ROUND).write_bytes("".join(f"{name}\n" for name in names).encode())

    assert read_round(str(lead)) == ()
    write_round(str(lead), names[1:] if where == 0 else names[:2])
    assert len(read_round(str(lead))) == 2


@pytest.mark.parametrize(
    "content",
    [
        f"{DELIVERY}.1\n{DELIVERY}.12".encode(),
        f"{DELIVERY}.1\n{DELIVERY}.1\n".encode(),
        f"{DELIVERY}.1\n\xff\n".encode("latin-1"),
        "".join(f"{DELIVERY}.{number}\n" for number in range(4097)).encode(),
        b"x" * ((1 << 20) + 1),
    ],
    ids=["cut", "twice", "not-ascii", "too-many", "too-large"],
)
def test_a_round_that_is_not_whole_is_none(tmp_path: Path, content: bytes) -> None:
    """Nobody guesses which lines were meant."""
    (tmp_path / proof.ROUND).write_bytes(content)

    assert read_round(str(tmp_path)) == ()


def test_a_pipe_in_the_rounds_place_does_not_hang(tmp_path: Path) -> None:
    """It is no round."""
    os.mkfifo(tmp_path / proof.ROUND)

    assert read_round(str(tmp_path)) == ()


def test_a_round_has_room_for_4096_others(tmp_path: Path) -> None:
    """More than any dispatcher puts into one run."""
    names = tuple(f"{DELIVERY}.{number}" for number in range(4096))

    write_round(str(tmp_path), names)

    assert names == read_round(str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"{", to_bytes(an_envelope())[:-3]])
def test_a_torn_permit_is_not_taken(tmp_path: Path, content: bytes) -> None:
    """It stays, so that the dispatcher can withdraw it: the door is provably untouched."""
    (tmp_path / proof.PERMIT).write_bytes(content)

    with pytest.raises(EnvelopeTorn):
        take(str(tmp_path))
    assert withdraw(str(tmp_path))


def test_a_pipe_in_the_permits_place_does_not_hang(tmp_path: Path) -> None:
    """It is refused, and withdrawn like a permit."""
    os.mkfifo(tmp_path / proof.PERMIT)

    with pytest.raises(OSError, match="not a plain file"):
        take(str(tmp_path))
    assert withdraw(str(tmp_path))


def test_nothing_is_claimed_of_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    """Where nobody can tell, the permit counts as taken."""
    (tmp_path / "file").write_bytes(b"")

    assert not withdraw(str(tmp_path / "file"))


def test_a_permit_that_cannot_be_renamed_is_not_withdrawn(tmp_path: Path) -> None:
    """A folder in the way: the permit still stands, so nothing is promised."""
    issue(str(tmp_path), an_envelope())
    (tmp_path / proof.WITHDRAWN).mkdir()

    assert not withdraw(str(tmp_path))
    assert an_envelope() == take(str(tmp_path))


def test_a_receipt_survives(tmp_path: Path) -> None:
    """With all its notices."""
    receipt = a_receipt(notices=(Notice("held"), Notice("expired", "refused", None, "é\u2028")))

    leave_receipt(str(tmp_path), receipt)

    assert receipt == read_receipt(str(tmp_path))


def test_no_receipt_is_none(tmp_path: Path) -> None:
    """Absent is not torn."""
    assert read_receipt(str(tmp_path)) is None


def test_a_folder_in_the_receipts_place_is_torn(tmp_path: Path) -> None:
    """Whatever lies there, reading gives an answer."""
    (tmp_path / proof.RECEIPT).mkdir()

    assert isinstance(read_receipt(str(tmp_path)), TornReceipt)


def test_a_receipt_that_may_not_be_read_is_torn(tmp_path: Path) -> None:
    """A link in a circle raises in the system, not in us."""
    os.symlink(tmp_path / proof.RECEIPT, tmp_path / proof.RECEIPT)

    found = read_receipt(str(tmp_path))

    assert isinstance(found, TornReceipt)
    assert "not readable" in found.why


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"wrote": False}, "contradicts"),
        ({"found": "door-mismatch"}, "contradicts"),
        ({"wrote": False, "found": "door-mismatch"}, "contradicts"),
        ({"wrote": False, "eof": False, "found": "gone"}, "does not know"),
        ({"notices": (a_receipt(),)}, "fields missing"),
        ({"notices": (Notice(1),)}, "status is no str"),  # type: ignore[arg-type]
        ({"attempt": "1"}, "attempt is no int"),
        ({"surfaced": 1}, "surfaced is no bool"),
        ({"transcript": 1}, "transcript is no str"),
        ({"pid": "1"}, "pid is no int"),
        ({"v": 3}, "a version"),
    ],
)
def test_a_receipt_that_makes_no_sense_is_torn(
    tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    """The reason is named."""
    leave_receipt(str(tmp_path), a_receipt(**changes))

    found = read_receipt(str(tmp_path))

    assert isinstance(found, TornReceipt)
    assert why in found.why


def test_a_notice_that_is_no_object_is_torn() -> None:
    """Also in an otherwise good receipt."""
    shown = json.dumps(fields(a_receipt()) | {"notices": ["held"]})

    assert parse_receipt(shown.encode()) == TornReceipt("a notice is no object")
