"""One carrier run as the dispatcher wants it: a round of one line or of many.  Pure."""

from __future__ import annotations

from registry.record import Record


class Order(Record):
    """What a keeper carries out: a program, its surroundings, the folders of its lines."""

    argv: list[str]  # the first word is the path of the program
    env: dict[str, str]
    cwd: str
    folders: tuple[str, ...]  # one for each line, in the order of the round; the lead first
    lease_fd: int
    deadline_s: float
    wrapper_s: float  # how long a wrapper may hold the permits
    adopt: str = "prctl"  # libc's function for adopting orphans; without it the group is all

    @property
    def lead(self) -> str:
        """The folder that argv and environment name; the whole run is told in it."""
        return self.folders[0]
