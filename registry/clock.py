"""Time as an argument.  The only module that asks the machine what time it is."""

from __future__ import annotations

import time

# The years 1000 and 9999: four digits, neither more nor fewer.
_FIRST, _LAST = -30_610_224_000.0, 253_402_300_799.999
# Linux alone has it; it goes on while the machine sleeps, as the kernel's start times do.
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """The machine's clock; tests hand in their own subclass."""

    def now(self) -> float:
        """Seconds since 1970, UTC.  May jump; never used to order anything."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only grow, for deadlines inside one process."""
        return time.monotonic()

    def since_boot(self) -> float:
        """Seconds since the machine was started, as Linux counts the start of a process."""
        return time.clock_gettime(_BOOTTIME)

    def sleep(self, seconds: float) -> None:
        """Return after *seconds*; a signal may end it early."""
        time.sleep(seconds)


def iso(at: float) -> str:
    """*at* as `2026-11-30T14:24:04.751Z`: UTC, milliseconds, fixed width.

    What no such text can say, damage for one, is the first or the last moment that it can.
    """
    whole, millis = divmod(round(min(max(at, _FIRST), _LAST) * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{millis:03d}Z"
