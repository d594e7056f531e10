"""Each command in the same four steps: check the words, assemble, call, say it and its status."""

from __future__ import annotations

import json
import math
import os
import sys

from dispatch.cli import source
from dispatch.cli.speech import complain, hold_interrupts, speak
from dispatch.house import House
from dispatch.sender import sender_of
from dispatch.verdict import TABLE
from registry.clock import Clock
from registry.home import find_places
from registry.ids import draw
from registry.processes import Processes
from registry.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.cli.options import KissArgs
    from dispatch.result import Result

_LONGEST_KEY = 200


class Usage(Exception):
    """Words on the command line that no command understands."""


def this_house(session_id: str | None = None) -> House:
    """The ports of the machine that zdo runs on; *session_id*: `--session-id` as it was given."""
    env = dict(os.environ)
    return House(
        env=env,
        places=find_places(env),
        clock=Clock(),
        processes=Processes(),
        draw=draw,
        python=sys.executable,
        root=os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
        speaker=sender_of(session_id, env),
    )


def kiss(args: KissArgs) -> int:
    """`zdo kiss`: deliver now."""
    from dispatch.errand import Order
    from dispatch.kiss import kiss as deliver
    from dispatch.render import kiss_line, plan_lines

    args = _placed(args)
    _check(args)
    house = this_house(args.session_id)
    order = Order(
        address=args.address,
        take_line=source.line_source(args.line, args.file, sys.stdin.buffer),
        sender=house.speaker,
        key=args.key,
        dry_run=args.dry_run,
        until_surfaced=args.proof is not None,
        wait_s=args.wait,
        if_idle=args.if_idle,
        queue=args.queue,
        or_queue=args.or_queue,
        reply=args.reply,
        sign=args.sign,
        lock_timeout_s=args.lock_timeout,
    )
    result = deliver(order, house)
    hold_interrupts()
    lines = plan_lines(result) if args.dry_run else [kiss_line(result)]
    return say(result, lines, as_object=args.json)


def say(result: Result, lines: list[str], *, as_object: bool) -> int:
    """The exit status of *result*, after it was printed in its one of two forms."""
    from dispatch.render import clean, failure_line
    from dispatch.result import as_json

    status = result.verdict.exit
    if result.warning is not None:
        complain(clean(f"zdo: warning: {result.warning}"))
    if status:
        complain(failure_line(result.verdict.name, result.reason, result.advice))
    if as_object:
        lost = speak([json.dumps(as_json(result))], quietly=status != 0)
        return status or lost
    return status or speak(lines)


def fail(command: str, name: str, reason: str, *, as_object: bool) -> int:
    """The exit status of class *name* for a command that never got a result of its own."""
    from dispatch.result import Result

    if command == "relay" and as_object:
        # Its object is another one, and a script that reads it gets no second kind.
        from dispatch.cli.relaying import say_failed

        return say_failed(name, reason)
    result = Result(command=command, verdict=TABLE[name], reason=reason)
    return say(result, [], as_object=as_object)


def _placed(args: KissArgs) -> KissArgs:
    """*args* with each word in its place: an answer has no address, so its first is the line."""
    if args.reply is None:
        return args
    if args.line is not None:
        raise Usage("--reply goes to the sender of that delivery, so there is no address")
    return replace(args, address=None, line=args.address)


def _check(args: KissArgs) -> None:
    if args.address is None and args.reply is None:
        raise Usage("no address given, and no --reply DELIVERY")
    if (args.line is None) == (args.file is None):
        raise Usage("give the line as an argument, as - for stdin, or with --file, once")
    if args.proof not in (None, "surfaced"):
        raise Usage("--proof knows only surfaced")
    if args.queue and (args.or_queue or args.dry_run or args.proof is not None):
        raise Usage("--queue starts nothing, so it goes without --or-queue, --dry-run and --proof")
    if args.or_queue and (args.dry_run or args.proof is not None):
        raise Usage("--or-queue may keep the line, so it goes without --dry-run and --proof")
    if args.key is not None and not _fits_key(args.key):
        raise Usage(f"--key takes 1 to {_LONGEST_KEY} bytes of UTF-8")
    if not (math.isfinite(args.wait) and math.isfinite(args.lock_timeout)):
        raise Usage("--wait and --lock-timeout take a finite number of seconds")


def _fits_key(key: str) -> bool:
    try:
        return 0 < len(key.encode()) <= _LONGEST_KEY
    except UnicodeEncodeError:
        return False
