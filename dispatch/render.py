"""Results and listings as a person reads them: plain lines, no colour, nothing that acts.

Names in rows are other people's text; control characters in them never reach a
terminal.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from dispatch.fsck import Findings
    from dispatch.result import Result
    from registry.targets import Config

_SHORT_ID = 8
_LAST_LINES, _WIDEST = 3, 200


def clean(text: object) -> str:
    """*text* on one line, with every unprintable character written out."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in str(text)
    )


def failure_line(name: str, reason: object, advice: object) -> str:
    """The one line on stderr: `zdo: <class>: <reason>; <what to do>`."""
    return clean(f"zdo: {name}: {reason}; {advice}")


def kiss_line(result: Result) -> str:
    """A delivery in one sentence."""
    target = result.target
    if result.verdict.name == "queued":
        return clean(f"queued: {target.id}; delivery {result.delivery_id}")
    session = "" if target.id == target.session_id else f"session {short(target.session_id)}, "
    where = f"{target.id} ({session}pid {target.pid}, {target.status})"
    return clean(
        f"{result.verdict.name}: {where}; proof: {result.proof}; delivery {result.delivery_id}"
    )


def resolve_lines(result: Result) -> list[str]:
    """Both sessions and the route, two lines."""
    target = result.target
    return [
        clean(
            f"target   {target.session_id}  {target.id}  pid {target.pid}"
            f"  {target.status}  by {target.route}"
        ),
        clean(f"postbox  {result.carrier.session_id}"),
    ]


def plan_lines(result: Result) -> list[str]:
    """A dry run: the sessions, argv one element a line, the environment by name."""
    plan = result.plan
    if plan is None:
        return resolve_lines(result)
    shown = [*resolve_lines(result), "argv"]
    shown += [
        clean(f"  {part!r}" if part == "" or " " in part else f"  {part}") for part in plan.argv
    ]
    return [*shown, "environment", clean("  " + " ".join(plan.env))]


def spool_lines(lines: list[dict[str, Any]]) -> list[str]:
    """A table of kept lines; a line that waits for another names it."""
    head = ("DELIVERY", "TARGET", "STATE", "TRIES", "BYTES", "WHY")
    rows = [
        (
            str(line["delivery_id"]),
            str(line["target"]),
            str(line["state"]),
            str(line["attempts"]),
            str(line["bytes"]),
            _why(line),
        )
        for line in lines
    ]
    return table(head, rows)


def _why(line: dict[str, Any]) -> str:
    if line["held_by"]:
        return f"behind {short(line['held_by'])}"
    told = [str(line[name]) for name in ("class", "reason") if line[name]]
    return ": ".join(told) or "-"


def open_line(result: Result) -> str:
    """One open delivery as a later look found it."""
    reason = f": {result.reason}" if result.reason else ""
    where = f"{result.delivery_id} {result.target.id or '-'}"
    return clean(f"{where} {result.verdict.name}, proof {result.proof}{reason}")


def fsck_lines(found: Findings) -> list[str]:
    """What a look at the spool came to: one line for all of it, then one for each oddity."""
    if found.saved is not None:
        saved = found.saved
        head = (
            f"saved lines: {saved.lines} (in doubt: {saved.doubted}, damaged: {saved.dead}),"
            f" entries: {saved.events}, readers: {saved.readers};"
            f" lost at least: lines {saved.lost_lines}, entries {saved.lost_events},"
            f" readers {saved.lost_readers}"
        )
    elif found.state == "absent":
        head = f"there is no {found.path} yet"
    else:
        head = f"{found.path} is whole; lines: {found.lines}, entries: {found.events}"
    oddities = (
        ("was damaged", found.complaints),
        ("damaged line", found.damaged_lines),
        ("odd line", found.odd_lines),
        ("damaged entries", (found.damaged_events,) * bool(found.damaged_events)),
        ("not as the journal says", found.contradicted),
        ("claimed by nobody alive, for zdo relay", (found.orphans,) * bool(found.orphans)),
        ("folder without a line", found.stray_folders),
        ("open line without its folder", found.missing_folders),
    )
    told = [clean(f"{what}: {each}") for what, those in oddities for each in those]
    return [clean(f"fsck: {head}"), *told]


def target_lines(config: Config) -> list[str]:
    """A table of configured targets."""
    head = ("TARGET", "BY", "VALUE", "POSTBOX")
    rows = [
        (each.id, each.kind, each.value, _postbox(each.carrier_session, config.carrier_session))
        for each in config.targets
    ]
    return table(head, rows)


def event_line(at: str, kind: str, name: str | None, reason: object) -> str:
    """One entry of a delivery's story."""
    said = f" {name}" if name else ""
    why = f": {reason}" if reason else ""
    return clean(f"{at} {kind}{said}{why}")


def output_lines(stdout: str, stderr: str) -> list[str]:
    """The last words of a carrier on each stream, indented; none where it said nothing."""
    streams = (("stdout", stdout), ("stderr", stderr))
    return [
        clean(f"  {name}  {line[-_WIDEST:]}")
        for name, said in streams
        for line in said.splitlines()[-_LAST_LINES:]
    ]


def short(session_id: str | None) -> str:
    """The first eight characters of an id, enough for a person."""
    return session_id[:_SHORT_ID] if session_id else "-"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """*rows* in columns under *head*, each as wide as its widest cell."""
    cells = [head, *(tuple(clean(cell) for cell in row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells
    ]


def _postbox(own: str | None, station: str) -> str:
    chosen = station if own is None else own
    return chosen or "none"
