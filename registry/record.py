"""Frozen records without the start-up price of the dataclasses module.

Importing dataclasses costs half as much again as a bare interpreter, and every
kiss would pay it twice.  A type checker sees a frozen dataclass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeVar, dataclass_transform

    R = TypeVar("R", bound="Record")
else:

    def dataclass_transform(**_: object) -> object:
        """Mark for type checkers; nothing at run time."""
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Record:
    """A value: fields are the annotations of the subclass, equality is by field.

    A record is not subclassed further; a default is the class attribute.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = tuple(type(self).__annotations__)
        given = dict(zip(names, args, strict=False)) | kwargs
        known = names.__contains__
        if len(given) != len(args) + len(kwargs) or not all(map(known, given)):
            raise TypeError(f"{type(self).__name__}: too many, repeated or unknown fields")
        for name in names:
            if name not in given and not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} lacks {name}")
        self.__dict__.update(given)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and fields(self) == fields(other)

    def __hash__(self) -> int:
        return hash(tuple(fields(self).values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in fields(self).items())
        return f"{type(self).__name__}({shown})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"{type(self).__name__} is frozen: {name} stays as it is, not {value!r}"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} stays")


def fields(value: Record) -> dict[str, Any]:
    """The fields of the record *value* by name, in their order."""
    return {name: getattr(value, name) for name in type(value).__annotations__}


def replace(value: R, **changes: Any) -> R:
    """A copy of the record *value* with *changes*; an unknown field is a TypeError."""
    return type(value)(**(fields(value) | changes))
