"""Records: frozen values, equal by field, without the dataclasses module."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from registry.record import Record, fields, replace

ROOT = Path(__file__).parents[2]


class Point(Record):
    """A record with a default."""

    x: int
    y: int
    label: str | None = None


class Other(Record):
    """The same fields under another name."""

    x: int
    y: int
    label: str | None = None


def test_fields_are_given_by_place_or_by_name() -> None:
    """And a default is the class attribute."""
    assert Point(1, y=2) == Point(x=1, y=2, label=None)
    assert {"x": 1, "y": 2, "label": None} == fields(Point(1, 2))


@pytest.mark.parametrize(
    ("args", "named", "why"),
    [
        ((1,), {}, "Point lacks y"),
        ((), {}, "Point lacks x"),
        ((1, 2, "a", 4), {}, "too many, repeated or unknown"),
        ((1, 2), {"x": 1}, "too many, repeated or unknown"),
        ((1, 2), {"z": 1}, "too many, repeated or unknown"),
        ((1, 2), {"__init__": 1}, "too many, repeated or unknown"),
    ],
)
def test_wrong_fields_are_a_type_error(
    args: tuple[int, ...], named: dict[str, int], why: str
) -> None:
    """Like a call with wrong arguments."""
    with pytest.raises(TypeError, match=why):
        Point(*args, **named)


def test_equality_is_by_field_and_by_type() -> None:
    """Equal records hash alike; another type with the same fields is another value."""
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(2, 1)
    assert Point(1, 2) != Other(1, 2)
    assert Point(1, 2) != (1, 2, None)
    assert len({Point(1, 2), Point(1, 2), Point(1, 3)}) == 2


def test_a_record_shows_its_fields() -> None:
    """A failed assertion is readable."""
    assert repr(Point(1, 2, "a")) == "Point(x=1, y=2, label='a')"


def test_a_record_is_frozen() -> None:
    """No field changes, none goes, none comes."""
    point = Point(1, 2)

    with pytest.raises(AttributeError, match="Point is frozen: x stays as it is, not 5"):
        point.x = 5  # type: ignore[misc]
    with pytest.raises(AttributeError, match="Point is frozen: x stays"):
        del point.x
    with pytest.raises(AttributeError):
        point.z = 1  # type: ignore[attr-defined]

    assert point == Point(1, 2)


def test_a_copy_differs_only_where_asked() -> None:
    """The original stays; an unknown field is refused."""
    point = Point(1, 2, "a")

    assert Point(1, 3, "a") == replace(point, y=3)
    assert point == Point(1, 2, "a")
    with pytest.raises(TypeError):
        replace(point, z=1)


def test_a_record_survives_pickling() -> None:
    """Tests hand records to other processes."""
    point = Point(1, 2, "a")

    assert point == pickle.loads(pickle.dumps(point))  # noqa: S301 - our own bytes


def test_records_load_nothing_dear() -> None:
    """The reason for the module is its price."""
    program = f"import sys; sys.path[:0] = [{str(ROOT)!r}]; before = set(sys.modules); "
    program += "import registry.record; print(sorted(set(sys.modules) - before))"

    done = subprocess.run([sys.executable, "-IS", "-c", program], capture_output=True, check=True)

    assert done.stdout == b"['__future__', 'registry', 'registry.record']\n"
