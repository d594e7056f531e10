"""The rig as the stage of `zdo selftest`, where there is no Claude Code to try."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dispatch.rig.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dispatch.rig.door import FakeDoor


class RigStage:
    """A session that is none, in a rig of its own."""

    kind: str = "the rig"

    def __init__(self) -> None:
        self._rig = Rig()
        self._rig.__enter__()
        self._rig.configure("")
        self.env: Mapping[str, str] = self._rig.env
        self.claude: str = self._rig.claude
        self._door: FakeDoor | None = None

    def start(self) -> str:
        """The id of the session."""
        self._door = self._rig.door(name="zdo-selftest")
        return self._door.session_id

    def end(self) -> None:
        """It ends by itself."""
        self._rig.close_doors()

    def close(self) -> None:
        """The rig is gone."""
        if os.path.lexists(self._rig.root):
            self._rig.__exit__()

    def left(self) -> list[str]:
        """Its folder, if that is there all the same."""
        return [self._rig.root] if os.path.lexists(self._rig.root) else []
