"""On which file system a folder lies, by the kernel's own table."""

from __future__ import annotations

import os
import sys

import pytest

from registry.errors import StateUnsafe
from registry.filesystem import network_filesystem, refuse_network

TABLE = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 22 0:40 / /home rw,relatime shared:2 master:1 - nfs4 box:/home rw
32 31 254:1 / /home/u/local rw - ext4 /dev/vdb rw
33 22 0:41 / /mnt/with\040blank\011tab\134backslash rw - cifs //box/share rw
34 22 0:42 / /mnt/ssh rw - fuse.sshfs u@box: rw
35 22 0:43 / /mnt/appimage rw - fuse.squashfuse a rw
36 22 0:44 / /mnt/twice rw - autofs systemd-1 rw
37 36 0:45 / /mnt/twice rw - nfs box:/twice rw
38 22 0:46 / /mnt/odd\999\04 rw - 9p host rw
39 22 0:47 / /mnt/fuse rw - fuse /dev/fuse rw
40 22 0:48 / /mnt/not-fuse rw - ext4.sshfs a rw
half a line
41 22 - nfs4
"""


@pytest.fixture
def table(tmp_path):
    """The file with TABLE."""
    path = tmp_path / "mountinfo"
    path.write_text(TABLE)
    return str(path)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None),
        ("/var/lib", None),
        ("/home", "nfs4"),
        ("/home/u/.local/state/zdo", "nfs4"),
        ("/homework", None),
        ("/home/u/local", None),
        ("/home/u/local/state", None),
        ("/home/u/locals", "nfs4"),
        ("/mnt/with blank\ttab\\backslash/x", "cifs"),
        ("/mnt/ssh/x", "fuse.sshfs"),
        ("/mnt/appimage", None),
        ("/mnt/twice/x", "nfs"),
        ("/mnt/odd\\999\\04/x", "9p"),
        ("/mnt/fuse", None),
        ("/mnt/not-fuse", None),
    ],
)
def test_the_closest_mount_says_it(table, path, kind):
    """The longest mount point that is a parent, names unescaped, of two at one place the later."""
    assert kind == network_filesystem(path, table)


def test_a_link_is_followed_to_where_it_leads(table, tmp_path):
    """A state folder behind a link lies where the link leads."""
    os.symlink("/mnt/ssh/state", tmp_path / "state")

    assert "fuse.sshfs" == network_filesystem(str(tmp_path / "state"), table)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe - \xff\n" * 3, b"1 2 3 4 /\xff r - nfs"])
def test_a_table_that_says_nothing_proves_nothing(tmp_path, content):
    """No such table, an empty one, bytes that are no text: nobody is refused for it."""
    table = tmp_path / "mountinfo"
    if content is not None:
        table.write_bytes(content)

    assert network_filesystem("/home", str(table)) is None


def test_a_name_that_is_no_text_is_a_name(tmp_path):
    """Paths are bytes; so are mount points."""
    table = tmp_path / "mountinfo"
    table.write_bytes(b"1 2 0:3 / /mnt/\xff rw - nfs box:/ rw\n")

    assert "nfs" == network_filesystem(os.fsdecode(b"/mnt/\xff/state"), str(table))


def test_a_folder_on_a_network_is_refused_with_its_kind(table):
    """The sentence names the folder and what it lies on."""
    with pytest.raises(StateUnsafe) as caught:
        refuse_network("/home/u/state", table)

    assert str(caught.value) == (
        "/home/u/state: lies on a network file system (nfs4); its locks hold nobody"
    )
    refuse_network("/var", table)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a table of mounts")
def test_this_machine_s_own_table_can_be_read():
    """The form of the table is the kernel's, not ours."""
    assert network_filesystem("/proc") is None
