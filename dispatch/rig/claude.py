"""A fake `claude`: an executable that records how it was started and plays any outcome.

`install` puts it into a folder with its behaviour beside it, so it needs nothing of the
environment; `log_of` reads what it wrote.  Results are recorded ones of 2.1.332 with
another session_id.  By default it does as the real one: runs the hook, prints
`hook-blocked` when the hook decided so, else fails at the closed port.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from dispatch.rig.outcomes import OUTCOMES, SHAPES

# Every key of a behaviour with its default.
DEFAULTS: dict[str, Any] = {
    "version": "2.1.332",  # what --version says
    "version_s": 0.0,  # and after how long
    "outcome": "auto",  # auto, or one of OUTCOMES
    "session": "postbox",  # what the result says: the resumed session, or this text
    "exit": None,  # over the outcome's own status
    "shape": "plain",  # one of SHAPES
    "hook": "settings",  # settings: the command of --settings; env: $ZDO_CARRIER_WRAPPER; none
    "hook_stdin": "json",  # json, empty
    "hook_runs": 1,
    "hook_parallel": False,
    "before_s": 0.0,  # before the hook
    "after_s": 0.0,  # between hook and result
    "kill": None,  # [signal, "before" | "during" | "after"]: how it dies, relative to the hook
    "hang_s": 0.0,  # after the hook, instead of a result
    "ignore_term": False,
    "stray": None,  # {"s": seconds, "setsid", "double", "ignore_term", "holds_stdout"}
    "flood_stdout": 0,  # bytes of noise before the result
    "flood_stderr": 0,
    "trickle_s": 0.0,  # between the bytes of the result
    "stderr": None,  # over the outcome's own text
}

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(_HERE))
_HOOK_ENV = "hook:UserPromptSubmit"
_PROGRAM = """\
#!{python} -IS
import sys

sys.path.append({root!r})
from dispatch.rig.stand_in import main

main(__file__)
"""


def golden(name: str) -> Any:
    """The recorded file *name* of 2.1.332, parsed."""
    with open(os.path.join(_HERE, "recorded", f"{name}.json"), encoding="utf-8") as file:
        return json.load(file)


def install(folder: str | os.PathLike[str], name: str = "claude", **behaviour: Any) -> str:
    """The path of a fresh fake in *folder* that behaves so; an older one of the name goes."""
    unknown = behaviour.keys() - DEFAULTS.keys()
    shape, outcome = behaviour.get("shape", "plain"), behaviour.get("outcome", "auto")
    if unknown or shape not in SHAPES or outcome not in ("auto", *OUTCOMES):
        raise TypeError(f"the fake cannot behave so: {unknown or shape + ' ' + outcome}")
    path = os.path.join(str(folder), name)
    needed = ("hook-blocked", "connection-refused") if outcome == "auto" else (outcome,)
    recorded = {one: OUTCOMES[one][0] for one in needed}
    played = DEFAULTS | behaviour
    played["results"] = {
        one: golden(f"result-{file}") | OUTCOMES[one][3] for one, file in recorded.items() if file
    }
    played["hook_input"] = golden("hook-input-userpromptsubmit")
    played["hook_env"] = golden("child-env")[_HOOK_ENV]["env"]
    with open(path + ".behaviour.json", "w", encoding="utf-8") as file:
        json.dump(played, file)
    program = _PROGRAM.format(python=sys.executable, root=_ROOT)
    # Renamed into place: a running copy must not be written to.
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(program)
    os.chmod(path + ".new", 0o700)
    os.rename(path + ".new", path)
    return path


def log_of(path: str, event: str | None = None) -> list[dict[str, Any]]:
    """What the fake at *path* recorded, in order: all, or the entries of one *event*."""
    try:
        with open(path + ".log.jsonl", encoding="utf-8") as file:
            entries = [json.loads(line) for line in file]
    except FileNotFoundError:
        return []
    return [one for one in entries if event in (None, one["event"])]
