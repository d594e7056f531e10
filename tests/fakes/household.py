"""A house in a temporary folder: real files, real processes, no door and no claude but a script."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatch import journal, keep, kept, outcome, post, spool
from dispatch.house import House
from dispatch.result import CarrierFacts, LineFacts, Result, TargetFacts
from dispatch.rig.registry import FakeRegistry
from dispatch.rig.transcript import Transcript
from dispatch.spool import Draft
from dispatch.station import Station
from dispatch.tally import Tally
from dispatch.verdict import TABLE
from registry.clock import Clock
from registry.home import find_places
from registry.ids import new_uuid
from registry.record import replace
from tests.fakes.envelopes import DELIVERY, P, T, a_receipt
from tests.fakes.evidence import BINDING, NONCE, TranscriptFile, a_config, an_evidence

if TYPE_CHECKING:
    from carrier.attempt import Evidence
    from carrier.envelope import Envelope
    from dispatch.database import Database
    from dispatch.kept import Kept

ROOT = str(Path(__file__).parents[2])
LINE = b"tests are green"
BEGAN = 1_796_048_000.0
CONFIG = f"""\
[targets.fable]
session = "{T}"

[targets.itself]
session = "{P}"
"""


class Household:
    """Everything that a command needs, under *root*."""

    def __init__(self, root: Path):
        self.root, self.state = str(root), f"{root}/state"
        self.registry = FakeRegistry(self.root)
        self.claude_dir = self.registry.claude_dir
        self.env = {
            "HOME": self.root,
            "PATH": f"{root}/bin:/usr/bin:/bin",
            "ZDO_CONFIG": f"{root}/zdo.toml",
            "ZDO_STATE_DIR": self.state,
        }
        os.mkdir(f"{root}/bin")
        self.configure(CONFIG)

    def configure(self, text: str) -> None:
        """Replace the configuration file."""
        Path(self.env["ZDO_CONFIG"]).write_text(text, encoding="utf-8")

    def claude(self, script: str) -> None:
        """A `claude` that is this shell script."""
        program = f"{self.root}/bin/claude"
        Path(program).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        os.chmod(program, 0o700)

    def postbox(self) -> None:
        """The transcript of P, as a blocked first prompt leaves it."""
        where = os.path.realpath(f"{self.state}/postbox")
        Transcript(self.claude_dir, P, where).block("zdo postbox", "made")

    def runs(self, **fields: Any) -> None:
        """T runs, idle, under the name fable."""
        self.registry.add(**({"sessionId": T, "name": "fable"} | fields))

    def house(self, **changes: Any) -> House:
        """The ports, with *changes*."""
        plain = {
            "env": self.env,
            "places": find_places(self.env),
            "clock": Clock(),
            "processes": self.registry.processes,
            "draw": lambda: 0.5,
            "python": "/nowhere/python",
            "root": ROOT,
        }
        return House(**(plain | changes))

    def database(self) -> Database:
        """The open database."""
        return keep.open_database(self.house())

    def opened(self) -> contextlib.closing[Database]:
        """The open database, closed after the block."""
        return contextlib.closing(self.database())

    def line(self, key: str = DELIVERY) -> Kept | None:
        """The line with *key* as it stands; None when it was never kept."""
        with self.opened() as database, database.reading() as link:
            return kept.find(link, key)

    def state_of(self, key: str = DELIVERY) -> str | None:
        """The state of the line with *key*, by its name."""
        line = self.line(key)
        return None if line is None else kept.STATE_NAMES[line.state]

    def story(self, key: str = DELIVERY) -> list[tuple[str, str | None]]:
        """The delivery's events as (kind, class)."""
        with self.opened() as database, database.reading() as link:
            return [(event.kind, event.name) for event in journal.story(link, key)]

    def alter(self, statement: str, *values: object) -> None:
        """Change the database behind zdo's back."""
        with self.opened() as database, database.writing() as link:
            link.execute(statement, values)

    def station(self, database: Database, **changes: Any) -> Station:
        """A pass of the relay over *database*, its house with *changes*."""
        house = self.house(**changes)
        return Station(house, house.config(), database, Tally(), new_uuid(), set(), lambda: None)

    def queued(self, key: str = DELIVERY, body: bytes = LINE, **changes: Any) -> Result:
        """A line that waits for the relay."""
        draft = a_draft(body, key=key, **changes)
        result = asked(
            delivery_id=key,
            key=key,
            verdict=TABLE["queued"],
            sender=draft.sender,
            line=LineFacts(len(body), draft.digest.hex()),
        )
        with self.opened() as database:
            assert keep.enqueue(database, draft, result, BEGAN) is None
        return result

    def accepted(self, **changes: Any) -> Result:
        """A delivery to T that was accepted and has no verdict; its owner is a stranger."""
        result, _ = self.claimed(**changes)
        return replace(result, attempt=None)

    def claimed(self, **changes: Any) -> tuple[Result, str]:
        """The next attempt of a kiss, accepted, and who owns it."""
        draft = a_draft(**changes)
        line = self.line()
        result = asked(attempt=1 if line is None else line.next_attempt)
        with self.opened() as database:
            claim = accept(database, draft, result)
        assert result.attempt == claim
        return result, draft.owner

    def taken(self, *keys: str, at: float = BEGAN) -> None:
        """Queued lines that a relay has claimed, and then died."""
        with self.opened() as database, database.writing() as link:
            for key in keys or (DELIVERY,):
                line = kept.find(link, key)
                assert line is not None
                spool.claim(link, [line], new_uuid(), P, at)
                result = asked(delivery_id=key, key=key, attempt=line.next_attempt)
                keep.begun(link, journal.CLAIMED, result, envelope_of(result), at)

    def judged(self, **changes: Any) -> Result:
        """A kiss's delivery that was judged by an evidence with *changes*; its target lives."""
        begun, owner = self.claimed()
        evidence = an_evidence(**({"receipt": a_receipt(pid=os.getpid())} | changes))
        result = conclude(evidence, int(begun.attempt or 0))
        with self.opened() as database:
            settle(database, self.house(), result, owner, evidence)
        return result

    def folder(self, attempt: int = 1, key: str = DELIVERY) -> str:
        """The private folder of an attempt."""
        return f"{self.state}/attempts/{key}.{attempt}"

    def transcript(self, session_id: str = T) -> TranscriptFile:
        """The transcript of *session_id*."""
        return TranscriptFile(self.claude_dir, session_id)


def asked(**changes: Any) -> Result:
    """What is known of a kiss to T when it is accepted."""
    plain = {
        "command": "kiss",
        "verdict": TABLE["unknown"],
        "delivery_id": DELIVERY,
        "key": DELIVERY,
        "sender": "anonymous",
        "target": TargetFacts(id="fable", session_id=T, pid=4201, status="idle", route="target"),
        "carrier": CarrierFacts(session_id=P),
    }
    return Result(**(plain | changes))


def key_of(number: int) -> str:
    """The delivery id of line *number*; that of the first is DELIVERY."""
    return f"{DELIVERY[:-12]}{number:012d}"


def a_draft(body: bytes = LINE, **changes: Any) -> Draft:
    """The line that asks to be kept."""
    plain = {
        "key": DELIVERY,
        "digest": hashlib.sha256(body).digest(),
        "body": body,
        "target": "fable",
        "owner": new_uuid(),
        "postbox": P,
    }
    return Draft(**(plain | changes))


def envelope_of(result: Result) -> Envelope:
    """The envelope of the attempt that *result* names."""
    return post.envelope_of(result, a_config(), LINE, NONCE)


def accept(database: Database, draft: Draft, result: Result, now: float = BEGAN) -> int | Kept:
    """What `keep.accept` says of *draft* for the attempt that *result* names."""
    return keep.accept(database, draft, result, envelope_of(result), now)


def settle(
    database: Database,
    house: House,
    result: Result,
    owner: str,
    evidence: Evidence | None = None,
) -> None:
    """Keep *result* as *owner*'s verdict, as a kiss does that keeps nothing for the relay."""
    facts = {} if evidence is None else post.evidence_facts(evidence)
    settled = keep.Settled(result, facts, outcome.of(result))
    keep.settle(database, house, [settled], owner, BEGAN + 1)


def conclude(evidence: Evidence, attempt: int = 1) -> Result:
    """The result that *evidence* makes of the delivery."""
    return post.conclude(asked(attempt=attempt), evidence, BINDING, NONCE)
