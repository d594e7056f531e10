"""A rig whose command runs in this process: for what a process of its own cannot show."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from typing import Any

from dispatch.cli.main import run
from dispatch.rig.rig import Rig, Said


class InsideRig(Rig):
    """As `Rig`; `zdo` runs the same words here, where coverage can see it."""

    def zdo(
        self,
        *words: str,
        env: dict[str, str] | None = None,
        stdin: str | bytes | None = None,
        **how: Any,
    ) -> Said:
        """What the command said when it ended; *env* adds to the rig's environment."""
        if how or stdin is not None:
            return super().zdo(*words, env=env, stdin=stdin, **how)
        out, err = _Stream(), _Stream()
        before = dict(os.environ)
        argv0 = sys.argv[0]
        try:
            os.environ.clear()
            os.environ.update(self.env | (env or {}))
            sys.argv[0] = self.program
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = run(list(words))
        finally:
            sys.argv[0] = argv0
            os.environ.clear()
            os.environ.update(before)
        return Said(subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue()))


class _Stream(io.StringIO):
    encoding = "utf-8"


RIGS = (Rig, InsideRig)
