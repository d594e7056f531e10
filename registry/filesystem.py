"""Which file system a folder lies on: a lock on a network one is a wish, not a lock.

Linux says it in its table of mounts.  On macOS nothing is checked: there is no such
table, and `statfs` is not in the standard library.
"""

from __future__ import annotations

import os

from registry.errors import StateUnsafe

MOUNTINFO = "/proc/self/mountinfo"

# Two hosts may have the same file open: SQLite's locks, and ours, end at the host.
_NETWORK = (
    "9p afs beegfs ceph cifs coda davfs fhgfs gfs gfs2 glusterfs gpfs lustre moosefs ncpfs nfs"
    " nfs4 ocfs2 orangefs panfs pvfs2 smb smb2 smb3 smbfs vboxsf vmhgfs"
)
_NETWORK_BY_FUSE = (
    "sshfs s3fs gcsfuse rclone davfs2 glusterfs mfs moosefs ceph-fuse curlftpfs smbnetfs"
    " fuse-nfs gvfsd-fuse goofys mount-s3 vmhgfs-fuse cvmfs2 blobfuse blobfuse2 juicefs"
)

# Of a line in the table: "36 35 98:0 / /mount/point rw - ext4 /dev/sda1 rw".
_POINT = 4
# How the kernel writes a blank, a tab, a newline and a backslash in a name.
_ESCAPED = {b"040": b" ", b"011": b"\t", b"012": b"\n", b"134": b"\\"}


def refuse_network(folder: str, mountinfo: str = MOUNTINFO) -> None:
    """StateUnsafe when *folder* lies on a network file system."""
    kind = network_filesystem(folder, mountinfo)
    if kind is not None:
        raise StateUnsafe(folder, f"lies on a network file system ({kind}); its locks hold nobody")


def network_filesystem(path: str, mountinfo: str = MOUNTINFO) -> str | None:
    """The type of the network file system that *path* lies on, or None.

    None also where the table of mounts cannot be read: that is no proof of anything.
    """
    try:
        with open(mountinfo, "rb") as file:
            table = file.read()
    except OSError:
        return None
    kind = _kind_at(os.fsencode(os.path.realpath(path)), table)
    return kind if kind is not None and _is_network(kind) else None


def _kind_at(path: bytes, table: bytes) -> str | None:
    """The type of the mount in *table* that is closest to *path*; of two at one place the later."""
    closest, kind = -1, None
    for line in table.splitlines():
        before, separator, after = line.partition(b" - ")
        fields = before.split(b" ")
        if not separator or len(fields) <= _POINT:
            continue
        point = _plain(fields[_POINT])
        if len(point) >= closest and _is_within(path, point):
            closest, kind = len(point), after.split(b" ")[0].decode(errors="replace")
    return kind


def _is_within(path: bytes, point: bytes) -> bool:
    return path == point or path.startswith(point.rstrip(b"/") + b"/")


def _is_network(kind: str) -> bool:
    family, _, name = kind.partition(".")
    by_fuse = family == "fuse" and name in _NETWORK_BY_FUSE.split(" ")
    return kind in _NETWORK.split(" ") or by_fuse


def _plain(field: bytes) -> bytes:
    """*field* as the name that it stands for."""
    first, *rest = field.split(b"\\")
    return first + b"".join(_ESCAPED.get(part[:3], b"\\" + part[:3]) + part[3:] for part in rest)
