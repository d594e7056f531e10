"""What the carrier layer refuses before anything starts."""

from __future__ import annotations


class CarrierError(Exception):
    """The root of this layer: one attempt and its binding."""


class CarrierMisbound(CarrierError):
    """Target and postbox are one session; resuming it would be a second driver."""

    def __init__(self, target: str, postbox: str):
        self.target, self.postbox = target, postbox
        super().__init__(f"target {target} and its postbox are one session, {postbox}")


class CarrierUnbound(CarrierError):
    """No postbox is configured for *target*; *why* says where it was looked for."""

    def __init__(self, target: str, why: str):
        self.target, self.why = target, why
        super().__init__(f"target {target} has no postbox: {why}")


class CarrierLive(CarrierError):
    """The postbox is a running session: somebody else drives it."""

    def __init__(self, postbox: str, pid: int):
        self.postbox, self.pid = postbox, pid
        super().__init__(f"postbox {postbox} is running as pid {pid}")


class NestedKiss(CarrierError):
    """A kiss from inside a carrier."""

    def __init__(self, target: str):
        self.target = target
        super().__init__(f"this process already runs under a carrier (for target {target})")


class AttemptExists(CarrierError):
    """The attempt's folder is already there: somebody tried this before, nobody knows how far."""

    def __init__(self, folder: str):
        self.folder = folder
        super().__init__(f"{folder} is left from an attempt that the journal does not know")


class EnvelopeTorn(CarrierError):
    """Bytes that are not exactly one envelope."""

    def __init__(self, why: str):
        self.why = why
        super().__init__(f"not an envelope: {why}")
