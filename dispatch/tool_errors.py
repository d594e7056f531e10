"""What the tools around a kiss refuse: each names its class itself, so no kiss has to know it."""

from __future__ import annotations

from dispatch.errors import DispatchError


class ToolError(DispatchError):
    """The root of them; *named* is the class of its verdict."""

    named = "internal"


class TargetTaken(ToolError):
    """The configuration has a target of that name."""

    named = "usage"
    hint = "change it with zdo target edit, or take another name"

    def __init__(self, target: str, path: str):
        self.target, self.path = target, path
        super().__init__(f"there is a target {target!r} in {path}")


class TargetMissing(ToolError):
    """The configuration has no target of that name."""

    named = "target-unknown"
    hint = "zdo target list shows the names"

    def __init__(self, target: str, path: str):
        self.target, self.path = target, path
        super().__init__(f"there is no target {target!r} in {path}")


class ChangeInvalid(ToolError):
    """What was asked for cannot stand in a configuration; *why* is what would be wrong with it."""

    named = "usage"
    hint = "the configuration is as it was"

    def __init__(self, key: str | None, why: str):
        self.key, self.why = key, why
        super().__init__(f"{key}: {why}" if key else why)


class TargetNeeded(ToolError):
    """Other targets use this one as their postbox."""

    named = "usage"

    def __init__(self, target: str, users: tuple[str, ...]):
        self.target, self.users = target, users
        self.hint = f"give {users[0]!r} another one first: zdo target edit"
        super().__init__(f"target {target!r} is the postbox of {', '.join(map(repr, users))}")


class ClaudeMissing(ToolError):
    """There is no program to carry with."""

    named = "carrier-spawn"

    def __init__(self, name: str, path: str):
        self.name, self.path = name, path
        super().__init__(f"no program {name!r} is found with PATH={path}")


class PostboxUnborn(ToolError):
    """No postbox was made: `claude` did not do what it should; *why* says what it did."""

    named = "carrier-exit"
    hint = "zdo doctor looks at what it needs, zdo selftest tries it without your sessions"

    def __init__(self, why: str):
        self.why = why
        super().__init__(f"no postbox was made: {why}")


class PostboxLate(PostboxUnborn):
    """The same, because it took too long."""

    named = "carrier-timeout"


class PostboxOdd(PostboxUnborn):
    """The same, because what it said is not that a session was made."""

    named = "carrier-output"


class PostboxKept(ToolError):
    """A postbox that is left as it is; *why* says what is in the way, *hint* what to do instead."""

    named = "usage"

    def __init__(self, postbox: str, why: str, hint: str):
        self.postbox, self.hint = postbox, hint
        super().__init__(f"postbox {postbox} {why}")


class TrialFailed(ToolError):
    """A trial did not come to what it should; *why* says what it came to."""

    named = "unhealthy"

    def __init__(self, why: str):
        self.why = why
        super().__init__(why)
