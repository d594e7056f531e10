"""What the registry refuses, each leaf named after the fact and holding its fields."""

from __future__ import annotations


class RegistryError(Exception):
    """The root of this layer: who runs, who is configured, who holds what."""


class ConfigInvalid(RegistryError):
    """The configuration cannot be used; *key* and *line* are None where there is none."""

    def __init__(self, path: str, why: str, *, line: int | None = None, key: str | None = None):
        self.path, self.why, self.line, self.key = path, why, line, key
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {key}: {why}" if key else f"{place}: {why}")


class AddressUnknown(RegistryError):
    """Nothing is named by *address*; *near* are close names, only ever suggested.

    *why* is a clause about what could not be seen.
    """

    def __init__(self, address: str, near: tuple[str, ...] = (), why: str = ""):
        self.address, self.near, self.why = address, near, why
        hint = f" (close: {', '.join(near)})" if near else ""
        because = f" ({why})" if why else ""
        super().__init__(f"nothing is named {address!r}{hint}{because}")


class AddressAmbiguous(RegistryError):
    """Several candidates fit *address*; choosing is the caller's."""

    def __init__(self, address: str, candidates: tuple[str, ...]):
        self.address, self.candidates = address, candidates
        super().__init__(f"{address!r} fits {len(candidates)} sessions: {', '.join(candidates)}")


class TicketUnbound(RegistryError):
    """No running session is bound to *ticket*; *why* is a clause, as far as it is known."""

    def __init__(self, ticket: str, why: str = ""):
        self.ticket, self.why = ticket, why
        because = f" ({why})" if why else ""
        super().__init__(f"TK REQUIRED: no running session is bound to {ticket}{because}")


class LeaseBusy(RegistryError):
    """Another holder kept the lease on *postbox* for all of *waited* seconds."""

    def __init__(self, postbox: str, waited: float):
        self.postbox, self.waited = postbox, waited
        super().__init__(f"postbox {postbox} was in use for all of {waited:g} s")


class StateUnsafe(RegistryError):
    """The state folder, or a file in it, cannot be trusted or written."""

    def __init__(self, path: str, why: str):
        self.path, self.why = path, why
        super().__init__(f"{path}: {why}")


class RegistryUnreadable(RegistryError):
    """The running sessions cannot be read now, so nobody can be called ended."""

    def __init__(self, path: str, why: str):
        self.path, self.why = path, why
        super().__init__(f"{path}: {why}")
