"""The wrapper: runs under the carrier, alone touches the door, and always answers "block".

A hook that dies lets its prompt through to a model (CONTRACT g, "fails open").  So
whatever happens, this program prints a block decision or exits 2, within its own time.
Standard library only, and little of it: a kiss waits for its start.
"""

from __future__ import annotations

import os

from carrier.knock import Machine, carry, read_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import FrameType
    from typing import NoReturn

    from carrier.door import Door
    from carrier.notices import Ear
    from carrier.stay import Held
else:
    # The signal module costs 1 ms of enumerations; its C core is there from the start.
    import _signal as signal

_LIMIT_S = 10.0  # until the envelope gives another
_LAST_S = 1.5  # more than the time, for receipts of what is known by then
_PART = 1 << 16
_BLOCKS = 2


class OutOfTime(BaseException):
    """The wrapper's own time is over; no handler of ordinary errors may take it."""


def main() -> NoReturn:
    """Block, with what a child did at the doors; the status is 0 with the decision, or 2.

    The process that speaks must be the one that listens, and may have to stay when the
    hook is over (docs/decisions/0009).
    """
    try:
        try:
            heed_no_stop()
            heard, told = os.pipe()
            os.fork() or speak_and_listen(heard, told)
            os.close(told)
            said = os.read(heard, _PART).decode() or "zdo wrapper-trouble killed"
        except BaseException as error:  # noqa: BLE001 - whatever it is, the prompt stays blocked
            said = f"zdo wrapper-trouble {type(error).__name__}"
        block(said)
    finally:
        # Reached only when something cuts into the lines above.
        os._exit(_BLOCKS)


def heed_no_stop() -> None:
    """A stop that arrives between write and receipt would make a doubt of a fact."""
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)


def speak_and_listen(heard: int, told: int) -> NoReturn:
    """Carry once, say into *told* what was done, and stay if a target holds a line."""
    staying: list[Ear] = []
    try:
        os.close(heard)
        _let_go_of((1, 2), told)
        said, held = _carry_once(told, staying)
        _tell(told, said)
        if held:
            _listen_on(held, staying)
    finally:
        for ear in staying:
            ear.close()
        os._exit(0)


def _let_go_of(numbers: tuple[int, ...], told: int) -> None:
    """The hook is over when its pipes are closed, also while we stay."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in numbers:
        if number != told:
            os.dup2(null, number)


def _carry_once(told: int, staying: list[Ear]) -> tuple[str, tuple[Held, ...]]:
    """What was done, in three words; and the lines for which an ear has to stay."""
    try:
        machine = this_machine(staying)
        done = carry(os.environ, read_hook(0, machine.clock), machine)
        if done.lead is None or not staying:
            return done.said, ()
        from carrier.stay import held_in, withdraw_from_the_run

        # Before the hook is over: then keeper and carrier's group are ended, and folders go.
        ours = (fd for ear in staying for fd in ear.waiting())
        withdraw_from_the_run(done.lead, (told, *ours), machine.processes)
        return done.said, held_in(done.lead)
    except BaseException as error:  # noqa: BLE001 - our parent blocks the prompt
        return f"zdo wrapper-trouble {type(error).__name__}", ()


def _tell(told: int, said: str) -> None:
    try:
        os.write(told, said.encode("ascii", "replace"))
    except OSError:
        return  # our parent was killed, which blocks the prompt as well
    finally:
        os.close(told)


def _listen_on(held: tuple[Held, ...], staying: list[Ear]) -> None:
    from carrier.stay import stay
    from registry.clock import Clock
    from registry.processes import Processes

    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGTERM, _out_of_time)
    stay(held, staying, Clock(), Processes())


def this_machine(staying: list[Ear] | None = None) -> Machine:
    """The real one: ended only by its own time, or by a kill."""
    from carrier.door import InboxDoor
    from registry.clock import Clock
    from registry.processes import Processes

    signal.signal(signal.SIGALRM, _out_of_time)
    clock, processes = Clock(), Processes()

    def limit(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds, _LAST_S)

    limit(_LIMIT_S)

    def inbox(deadline: float) -> Door:
        uid, pid = processes.own_uid(), os.getpid()
        return InboxDoor(clock, deadline=deadline, uid=uid, pid=pid, staying=staying)

    return Machine(clock, processes, inbox, limit)


def block(said: str) -> NoReturn:
    """Print the block decision with *said*, which needs no escaping, and leave."""
    decision = b'{"decision":"block","reason":"%s"}\n' % said.encode("ascii", "replace")
    try:
        whole = os.write(1, decision) == len(decision)
    except OSError:
        whole = False
    # No tear-down: nothing may run after the decision, and a kiss waits for the exit.
    os._exit(0 if whole else _BLOCKS)


def _out_of_time(number: int, _frame: FrameType | None) -> NoReturn:
    if number == signal.SIGTERM:
        # Another one would cut into the leaving; the alarm comes again on purpose.
        signal.signal(number, signal.SIG_IGN)
    raise OutOfTime
