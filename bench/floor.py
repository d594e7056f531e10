"""The yardstick: one Python that spawns the fake, reads its pipe, appends 300 bytes, syncs."""

import os

r, w = os.pipe()
fake = os.environ["FAKE"]
pid = os.posix_spawn(fake, [fake], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, w, 1)])
os.close(w)
while os.read(r, 65536):
    pass
os.waitpid(pid, 0)
out = os.open(os.environ["OUT"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(out, b"x" * 300)
os.fsync(out)
