"""A house in a temporary folder: real files, real processes, no door and no claude but a script."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatch import keep, post
from dispatch.house import House
from dispatch.result import CarrierFacts, Result, TargetFacts
from dispatch.spool import Draft
from dispatch.verdict import TABLE
from registry.clock import Clock
from registry.home import find_places
from registry.ids import new_uuid
from tests.fakes.envelopes import DELIVERY, P, T
from tests.fakes.evidence import BINDING, NONCE, TranscriptFile, an_evidence
from tests.fakes.registry import FakeRegistry

if TYPE_CHECKING:
    from carrier.attempt import Evidence
    from dispatch.database import Database

ROOT = str(Path(__file__).parents[2])
LINE = b"tests are green"
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
            "python": "/nowhere/python",
            "root": ROOT,
        }
        return House(**(plain | changes))

    def database(self) -> Database:
        """The open database."""
        return keep.open_database(self.house())

    def accepted(self, *, attempt: int = 1) -> Result:
        """A delivery to T that was accepted and has no verdict; its owner is a stranger."""
        database = self.database()
        result = asked()
        for _ in range(attempt):
            keep.accept(database, a_draft(), result, NONCE, 1_796_048_000.0)
        database.close()
        return result

    def judged(self, **changes: Any) -> Result:
        """A delivery that was judged by an evidence with *changes*."""
        database = self.database()
        owner = new_uuid()
        claim = keep.accept(database, a_draft(owner=owner), asked(), NONCE, 1_796_048_000.0)
        assert isinstance(claim, int)
        evidence = an_evidence(**changes)
        result = conclude(evidence, claim)
        keep.settle(database, result, post.evidence_facts(evidence), owner, 1_796_048_001.0)
        database.close()
        return result

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


def a_draft(body: bytes = LINE, **changes: Any) -> Draft:
    """The line that asks to be kept."""
    plain = {
        "key": DELIVERY,
        "digest": hashlib.sha256(body).digest(),
        "body": body,
        "station": "mini",
        "target": "fable",
        "owner": new_uuid(),
    }
    return Draft(**(plain | changes))


def conclude(evidence: Evidence, attempt: int = 1) -> Result:
    """The result that *evidence* makes of the delivery."""
    return post.conclude(asked(attempt=attempt), evidence, BINDING, NONCE)
