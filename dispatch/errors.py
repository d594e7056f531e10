"""What the dispatcher refuses by itself, before or after a carrier run."""

from __future__ import annotations

from registry.clock import iso


class DispatchError(Exception):
    """The root of this layer: the decision and what is kept of it."""


class LineInvalid(DispatchError):
    """Bytes that are not a line; *offset* counts bytes, None where no place is to blame."""

    def __init__(self, why: str, offset: int | None = None):
        self.why, self.offset = why, offset
        super().__init__(why if offset is None else f"{why} at byte {offset}")


class KeyConflict(DispatchError):
    """The key already stands for other bytes, or for a line to another target."""

    def __init__(self, key: str, target: str):
        self.key, self.target = key, target
        super().__init__(f"this key already stands for another line, to {target}")


class ClaimLost(DispatchError):
    """A line is not any more what it was when it was read: somebody else has decided about it."""

    def __init__(self, key: str):
        self.key = key
        super().__init__(f"delivery {key} was changed by another zdo meanwhile; look again")


class TargetNotRunning(DispatchError):
    """The address is known; no running session answers to it."""

    def __init__(self, target: str, why: str):
        self.target, self.why = target, why
        super().__init__(f"target {target} is not running: {why}")


class TargetStatus(DispatchError):
    """The row's status is not one that takes a line now."""

    def __init__(self, target: str, status: str | None, wanted: str):
        self.target, self.status, self.wanted = target, status, wanted
        super().__init__(f"target {target} has status {status or 'none'}, not {wanted}")


class DatabaseUnusable(DispatchError):
    """The file cannot be opened, read or written now; *why* is a clause for a sentence."""

    def __init__(self, path: str, why: str):
        self.path, self.why = path, why
        super().__init__(f"{path}: {why}")


class DatabaseFull(DatabaseUnusable):
    """The disk has no room for it; what was there before is untouched."""


class DatabaseDamaged(DatabaseUnusable):
    """The file holds what zdo never wrote; it is not used any further."""

    def __init__(self, path: str, why: str):
        super().__init__(path, f"{why}; zdo fsck keeps the file and saves what is whole in it")


class SpoolUnwritable(DispatchError):
    """The line could not be kept, so nothing was started."""

    def __init__(self, why: str):
        self.why = why
        super().__init__(f"the attempt cannot be laid out: {why}")


class JournalUnwritable(DispatchError):
    """The outcome could not be kept; *found* is the class it would have had."""

    def __init__(self, why: str, found: str):
        self.why, self.found = why, found
        super().__init__(f"the outcome {found} cannot be kept: {why}")


class JournalUnreadable(DispatchError):
    """Entry *event* of the journal is not one that this zdo can read."""

    def __init__(self, delivery: str, event: int):
        self.delivery, self.event = delivery, event
        super().__init__(f"entry {event} of delivery {delivery} is not one of this zdo's")


class DeliveryUnknown(DispatchError):
    """No delivery with that id stands in the journal."""

    def __init__(self, delivery: str):
        self.delivery = delivery
        super().__init__(f"no delivery {delivery!r} is known")


class NobodyToAnswer(DispatchError):
    """The delivery came from somebody whom no address names."""

    def __init__(self, delivery: str, sender: str):
        self.delivery, self.sender = delivery, sender
        super().__init__(
            f"delivery {delivery} came from {sender!r}, which is no session's id and no target"
        )


class LineInDoubt(DispatchError):
    """A line that may be at its door: only somebody who looked may queue it again."""

    def __init__(self, delivery: str):
        self.delivery = delivery
        super().__init__(
            f"delivery {delivery} is in doubt; once you know that it did not arrive:"
            f" zdo spool requeue {delivery} --i-have-looked"
        )


class LineUnderWay(DispatchError):
    """A line that is being tried, or whose dispatcher died."""

    def __init__(self, delivery: str):
        self.delivery = delivery
        super().__init__(f"delivery {delivery} is being tried, or its dispatcher died")


class NotOnShelf(DispatchError):
    """A line that is nobody's to queue again or to give up."""

    def __init__(self, delivery: str, why: str):
        self.delivery, self.why = delivery, why
        super().__init__(f"delivery {delivery} {why}")


class UnitImpossible(DispatchError):
    """Another program cannot be told how to start the relay; *why* says what is in the way."""

    def __init__(self, why: str):
        self.why = why
        super().__init__(why)


class SessionMissing(DispatchError):
    """Nobody said which session it is about."""

    error = "session_missing"

    def __init__(self, hint: str):
        self.hint = hint
        super().__init__("no session id was given")


class SessionInvalid(DispatchError):
    """An id, or a name, that no session can have; *why* says what it must be."""

    error = "session_invalid"
    hint = "see zdo register --help"

    def __init__(self, why: str):
        self.why = why
        super().__init__(why)


class SessionUnknown(DispatchError):
    """The session never registered, so it has no cursor."""

    error = "session_unknown"
    hint = "zdo register --session-id ID makes it known, zdo senders lists them"

    def __init__(self, session: str):
        self.session = session
        super().__init__(f"session {session} is not registered")


class SessionDeleted(DispatchError):
    """The session was unregistered; what it had is kept."""

    error = "session_deleted"
    hint = "zdo register --session-id ID takes it back, with its cursor"

    def __init__(self, session: str, deleted_at: float):
        self.session, self.deleted_at = session, deleted_at
        super().__init__(f"session {session} was unregistered at {iso(deleted_at)}")


class TargetDeleted(SessionDeleted):
    """The same of a session that a line is for: it takes none any more."""

    def __init__(self, session: str, deleted_at: float):
        super().__init__(session, deleted_at)
        self.args = (f"{self}: zdo register --session-id {session} takes it back",)


class CursorRefused(DispatchError):
    """A cursor that is none, see dispatch/cursor.py; *cursor* is where the reader itself stands."""

    error: str
    hint = "zdo receipts shows the ids of the entries"

    def __init__(self, cursor: int | None, why: str):
        self.cursor = cursor
        super().__init__(why)
