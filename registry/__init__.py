"""WHO runs, WHO is configured, WHO holds what.  The lowest layer: it imports no other."""
