"""What each class means to somebody who meets it at night: what is known, and what to do.

Exit, fate and the short advice stand in the table of verdicts, and nowhere here.
"""

from __future__ import annotations

from dispatch.verdict import DONE, FAILED, NONE, OPEN, QUEUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

# By fate: may the line be in, and may it be repeated?
FATES: Final = {
    DONE: "The line is in. Do not repeat it.",
    QUEUE: "The line is provably not in. Repeating it is safe, and the relay does so by itself.",
    OPEN: "The line may be in. Do not repeat it before you have looked.",
    FAILED: "The line is provably not in, and the receiver's side ended it. Nothing repeats it.",
    NONE: "Nothing was started for this line. It is not in.",
}

MEANINGS: Final = {
    "delivered-start": (
        "The right carrier answered, the receipt is of the right session, and no hold or refusal"
        " came. The session has the line: an idle one starts a turn with it, a busy one reads it"
        " between two tool calls. `proof` says how far its own transcript showed that."
    ),
    "surfaced": (
        "The target's transcript shows the line in the model's input. What the session does with"
        " it is its own affair."
    ),
    "queued": (
        "The line is on disk and waits for a relay. Nothing has been started for it, or a first try"
        " found that it had to wait; `reason` then has that class."
    ),
    "dry-run": "Everything was looked up and checked as for a kiss, and nothing was started.",
    "carrier-misbound": (
        "Target and postbox are one session. To resume it as a carrier would make a second driver"
        " of a session that somebody uses, so zdo refuses before anything starts."
    ),
    "carrier-unbound": (
        "Neither the target nor the station has a postbox, so there is nothing to carry with."
        " `zdo init` makes one for the station."
    ),
    "carrier-live": (
        "A running session has the postbox's id: somebody has opened it, or a carrier of another"
        " state folder uses it. Two drivers of one session lose turns, so zdo waits for nobody and"
        " refuses."
    ),
    "nested-kiss": (
        "zdo was called from inside a carrier run. A carrier that starts carriers would never end."
    ),
    "unknown": (
        "The line was on its way when the trail ended: a process was killed, an output was not"
        " readable, a door did not confirm. The target's transcript did not show the line so far."
        " `zdo verify` looks again and settles it if it can; you can also look into the session"
        " yourself."
    ),
    "carrier-mismatch": (
        "Claude Code answered under another session id than the postbox's. Which session it drove"
        " is not known, and no transcript can tell, so this verdict is never washed."
    ),
    "door-mismatch": (
        "The session behind the door was another one when the line came than when it was looked up:"
        " it was cleared, resumed elsewhere, or there are two with one id."
    ),
    "receipt-missing": (
        "The wrapper began and left no whole receipt: it was killed, or the disk was full, between"
        " its intent and its receipt."
    ),
    "receipt-foreign": (
        "A receipt lies in the attempt's folder that is not this attempt's. Somebody else wrote"
        " there; what it says is not believed."
    ),
    "door-held": (
        "The session keeps the line until its owner decides: it bypasses permission prompts and"
        " the sender claims no such mode, or its settings say hold. zdo makes no such claim, ever."
        " The owner sees a dialog; without an answer it expires, after five minutes by default."
    ),
    "not-surfaced": (
        "The line was delivered, and `--proof surfaced` did not see it in the model's input in"
        " time. A busy session reads it after its current tool call; one that ended before has"
        " lost it."
    ),
    "usage": "The words on the command line are none that the command understands.",
    "line-invalid": (
        "The line is not one: empty or blank, longer than 65,536 bytes, not UTF-8, or with control"
        " characters other than newline and tab. Nothing is repaired silently."
    ),
    "key-conflict": (
        "The key already stands for another line, or for the same line to another target. A key"
        " means one delivery for ever, so the two cannot both be meant."
    ),
    "target-unknown": (
        "Nothing bears that address: no configured target, running session, registered reader or"
        " known delivery. Close names are suggested and never taken."
    ),
    "target-ambiguous": "Several sessions fit the address. zdo never chooses between them.",
    "ticket-unbound": (
        "No running session is bound to the ticket: it has no `create` in the ledger, or nobody who"
        " works on it runs, or what binds them cannot be seen. The reason says which."
    ),
    "target-not-running": (
        "The address is known, and no running session answers to it now."
        " With `--or-queue` the line would have been kept until one does."
    ),
    "carrier-spawn": "There is no `claude` that can be started, or no process was to be had.",
    "expired": ("The session held the line and nobody approved it in time. It is gone from there."),
    "internal": (
        "zdo met something that it was not written for. What the sentence names is the place, never"
        " the line. What had been accepted is kept; zdo show and zdo verify tell how far it came."
    ),
    "spool-unwritable": (
        "The line could not be put on disk, and what is not on disk is not started: the disk is"
        " full, or the state folder is not safe to use."
    ),
    "journal-unwritable": (
        "The kiss was carried out and its outcome could not be written down; the sentence says what"
        " it was. The attempt's folder has the facts, and the next look puts them into the journal."
    ),
    "carrier-busy": (
        "Another kiss or the relay used the postbox for all of `--lock-timeout`. One postbox has"
        " one carrier at a time."
    ),
    "target-status": (
        "The session runs, and its status takes no line now: with `--if-idle` it was not idle, or"
        " it says none of idle, busy and waiting."
    ),
    "door-dropped": (
        "The session's inbox said that it dropped the line: more than 30 at once from one sender,"
        " or the same text within half a minute."
    ),
    "carrier-exit": (
        "Claude Code ended with an error before the wrapper ran. Most often it does not find the"
        " postbox (`zdo doctor` says so, `zdo postbox rotate` makes a new one) or it is too old for"
        " an option."
    ),
    "carrier-output": (
        "Claude Code ended well, and what it printed is not the one result object that it should"
        " be. The wrapper had not run."
    ),
    "carrier-timeout": (
        "The carrier did not end within `timeout_s` and was ended. Its wrapper had not begun, and"
        " cannot begin any more."
    ),
    "wrapper-not-run": (
        "Claude Code resumed the postbox and answered, and the hook that writes the line did not"
        " run or gave up before the door: hooks are switched off, or its Python is gone."
    ),
    "door-refused": (
        "The session does not take lines from others: its settings or a policy say so."
    ),
    "door-denied": "The owner of the session looked at the line and declined it.",
    "config-invalid": (
        "The configuration cannot be used as it is, or cannot be changed as asked. The sentence"
        " names file, line and key; the file itself is untouched."
    ),
    "unhealthy": ("Something that a kiss needs is not there. It says nothing of a line."),
    "interrupted": (
        "Ctrl-C came before anything could be at the door. One that comes later ends the carrier,"
        " and the verdict is what had been reached."
    ),
}
