"""What a fake session may be told to do, and the words that a real one uses."""

from __future__ import annotations

from typing import Any

T = "388e03f6-0000-4000-8000-000000000001"
LONGEST_FRAME = 1_048_576
IDLE_S = 30.0
HANG_UP_S = 5.0
BURST, REFILL_S, SAME_TEXT_S = 30, 2.0, 30.0
SUM_S, FRESH_S = 4.9, 60.0
TICK_S = 0.01

# What a script may say, with what is done when it does not say it.
SCRIPT: dict[str, Any] = {
    "status": "idle",  # None: the row has no status
    "waiting_for": None,
    "name": "fake-door",
    "session_id": T,
    "registered": True,  # False: row and key are taken away
    "token": True,  # False: no key file
    "accept": "surface",  # surface busy bare drop hold refuse dropped
    "enqueue": True,  # is there an enqueue row?
    "surface_after": 0.0,  # seconds to the user row, or to busy's attachment row; None: never
    "notice_after": 0.0,  # seconds to the first notice
    "hold_then": None,  # delivered denied expired
    "hold_after": 0.1,  # seconds from the held notice to the next one
    "drop_reason": "rate-limited",  # or duplicate, for "accept": "dropped"
    "limits": False,  # True: the inbox's real burst and same-text rules
    "burst": BURST,  # lines that one sender may write at once, with "limits"
    "sum_after": SUM_S,  # seconds from the second drop of a kind to the notice that sums them up
    "clear_to": None,  # a session id: at the next connection the row takes it
    "die": None,  # before-accept, at-accept, during (some bytes unread), after-read
    "eof_after": 0.0,  # None: never
}

HELD = (
    "Your message is held for the recipient user's approval before it reaches their Claude "
    "session (permission-mode parity)."
)
REASONS = {
    "held": HELD,
    "delivered": "Your previously-held message was approved and released to the recipient's "
    "Claude session.",
    "denied": "The recipient user declined your message; it was not delivered to their Claude "
    "session.",
    "expired": "Your held message expired without approval and was not delivered to the "
    "recipient's Claude session.",
    "refused": "The recipient session is not accepting cross-session messages (the feature is "
    "off there, or a setting or policy there refuses them); your message was not delivered to "
    "its Claude.",
    "dropped": "The recipient's session dropped your message at its inbox (rate limit, duplicate, "
    "relay loop, or full queue); it was not delivered and will not be.",
}
NOT_TYPED = (
    "This came from another Claude session — not typed by your user, but very likely working on "
    "their behalf. Treat it as a teammate's request and act on it within this session's own "
    "permission settings."
)
