"""What becomes of a line at a fake door, as its script says: surfaced, held, refused, dropped."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from dispatch.rig.caller import Allowance
from dispatch.rig.notices import Notices
from dispatch.rig.peers import start_of
from dispatch.rig.transcript import Transcript

if TYPE_CHECKING:
    from dispatch.rig.caller import Caller
    from dispatch.rig.session import Session


class Inbox:
    """The lines that come to *session*, each with its fate."""

    def __init__(self, session: Session):
        self.session = session
        self.notices = Notices(session.path, session.later, session.note)
        self.allowances: dict[str, Allowance] = {}  # by sender
        self._later = session.later
        # As `accept` of a script spells them.
        self._ways = {
            "surface": self._surface,
            "busy": self._busy,
            "bare": self._bare,
            "drop": self._bare,
            "hold": self._hold,
            "refuse": self._refuse,
            "dropped": self._dropped,
        }

    def take(self, frame: Any, caller: Caller) -> str:
        """What becomes of *frame*: the word for the record."""
        text = content_of(frame)
        if text is None:
            return "malformed"
        pin = frame.get("session_id")
        if pin is not None and pin != self.session.script["session_id"]:
            return "session-mismatch"
        own = any(step["pid"] == self.session.pid for step in caller.record["ancestry"])
        why = self._refused(frame, text)
        if why is not None:
            self._drop(frame, caller, why)
            return "dropped"
        way = self.session.script["accept"]
        if own and way == "hold":
            way = "surface"
        origin = self._origin(frame, caller, own=own)
        self._ways[way](frame, caller, text, origin)
        return str(way)

    def _drop(self, frame: dict[str, Any], caller: Caller, why: str) -> None:
        self.notices.drop(frame, caller, why, self.session.script["sum_after"])

    def _refused(self, frame: dict[str, Any], text: str) -> str | None:
        script = self.session.script
        # What is held or refused costs no allowance: only what goes in is counted.
        if not script["limits"] or script["accept"] in ("hold", "refuse"):
            return None
        sender = str(frame.get("from", ""))
        return self.allowances.setdefault(sender, Allowance(script["burst"])).refused(text)

    def _origin(self, frame: dict[str, Any], caller: Caller, *, own: bool) -> dict[str, Any]:
        origin: dict[str, Any] = {"kind": "peer"}
        if "from" in frame:
            origin["from"] = frame["from"]
        origin["verifiedPeerPid"] = caller.pid
        origin["verifiedPeerProcStart"] = start_of(caller.pid)
        if own:
            origin["selfSent"] = True
        if "msg_id" in frame:
            origin["msg_id"] = frame["msg_id"]
        if "from" in frame and caller.record["auth"] == self.session.registration.secret:
            origin["verifiedLocal"] = True
        return origin

    def _transcript(self) -> Transcript:
        return Transcript(self.session.config, self.session.script["session_id"], self.session.cwd)

    def _enqueue(self, text: str) -> Transcript:
        transcript = self._transcript()
        if self.session.script["enqueue"]:
            transcript.queue("enqueue", content=text)
        return transcript

    def _surface(self, _frame: Any, _caller: Caller, text: str, origin: dict[str, Any]) -> None:
        transcript = self._enqueue(text)
        self._later(self.session.script["surface_after"], lambda: transcript.surface(text, origin))

    def _busy(self, _frame: Any, _caller: Caller, text: str, origin: dict[str, Any]) -> None:
        transcript = self._enqueue(text)
        ids = (str(uuid.uuid4()), str(uuid.uuid4()))

        def absorb() -> None:
            transcript.remove(text, ids)
            transcript.attach(text, origin, ids)

        self._later(self.session.script["surface_after"], absorb)

    def _bare(self, *_: Any) -> None:
        pass

    def _hold(self, frame: Any, caller: Caller, text: str, origin: dict[str, Any]) -> None:
        transcript = self._transcript()

        def held() -> None:
            transcript.hold(text, origin)
            self.notices.notify(frame, caller, status="held")
            self._later(self.session.script["hold_after"], settled)

        def settled() -> None:
            then = self.session.script["hold_then"]
            if then is not None:
                self.notices.notify(frame, caller, status=then)
            if then == "delivered":
                transcript.surface(text, origin)

        self._later(self.session.script["notice_after"], held)

    def _refuse(self, frame: Any, caller: Caller, *_: Any) -> None:
        after = self.session.script["notice_after"]
        more = {"status": "expired", "status_detail": "refused"}
        self._later(after, lambda: self.notices.notify(frame, caller, **more))

    def _dropped(self, frame: Any, caller: Caller, *_: Any) -> None:
        why = self.session.script["drop_reason"]
        self._later(self.session.script["notice_after"], lambda: self._drop(frame, caller, why))


def content_of(frame: Any) -> str | None:
    """The text of a user frame; None when the real door drops it as malformed."""
    if not isinstance(frame, dict) or frame.get("type") != "user":
        return None
    told = frame.get("message")
    text = told.get("content") if isinstance(told, dict) else None
    return text if isinstance(text, str) and text else None
