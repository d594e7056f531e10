"""Proof rigs: real processes, real kills, real power cuts, and a judge that trusts no one.

`python -m tests.torture` runs them at full size; tests/acceptance/test_p*.py run them small.
"""
