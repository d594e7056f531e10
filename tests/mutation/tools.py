"""Faults of the commands that people run: target, explain, completions."""

from __future__ import annotations

from tests.mutation.fault import Fault

_CONFIGURE = "tests/unit/test_configure.py"
_ONE_THING = "tests/properties/test_configure.py"
_TARGET = "tests/acceptance/test_target.py"
_MANUAL = "tests/unit/test_manual.py"

FAULTS = (
    Fault(
        "write-a-configuration-unchecked",
        "dispatch/configure.py",
        "            check_file(path, new)\n            return new",
        "            return new",
        (_CONFIGURE, "-k", "called_is_refused or value_that_is_none"),
    ),
    Fault(
        "change-a-broken-file",
        "dispatch/configure.py",
        "    check_file(path, old)\n",
        "    old = old if _means(old, {}) or old.startswith('#') else ''\n",
        (_CONFIGURE, "-k", "broken"),
    ),
    Fault(
        "change-more-than-was-asked",
        "dispatch/configure.py",
        "        if new is not None and _means(new, meant):",
        "        if new is not None:",
        (_CONFIGURE, "-k", "by_itself"),
    ),
    Fault(
        "writers-do-not-wait-for-each-other",
        "dispatch/configure.py",
        "        with lock:\n",
        "        if lock:\n",
        (_TARGET, "-k", "many_writers"),
    ),
    Fault(
        "put-a-file-in-the-place-of-a-link",
        "dispatch/configure.py",
        "        real = os.path.realpath(path)",
        "        real = path",
        (_CONFIGURE, "-k", "linked"),
    ),
    Fault(
        "trust-what-others-may-write",
        "dispatch/configure.py",
        "    if found.st_mode & _OTHERS_WRITE:",
        "    if found.st_mode & _OTHERS_WRITE == -1:",
        (_CONFIGURE, "-k", "others_may_write"),
    ),
    Fault(
        "keep-two-selectors",
        "dispatch/configure.py",
        "                entry.pop(other, None)",
        "                entry.get(other)",
        (_CONFIGURE, "-k", "another_selector"),
    ),
    Fault(
        "remove-a-postbox-that-is-needed",
        "dispatch/configure.py",
        "        if users:\n",
        "        if not users and users:\n",
        (_CONFIGURE, "-k", "needed"),
    ),
    Fault(
        "forget-the-line-ends",
        "dispatch/configure.py",
        'replace("\\n", _line_end(old))',
        'replace("\\r", _line_end(old))',
        (_ONE_THING, "-k", "end_as_they_did"),
    ),
    Fault(
        "let-the-shell-see-a-failure",
        "dispatch/cli/completing.py",
        "        with contextlib.suppress(Exception):",
        "        with contextlib.suppress(KeyError):",
        (_TARGET, "-k", "offered"),
    ),
    Fault(
        "let-a-text-be-a-request",
        "dispatch/cli/manual.py",
        '    return f"\\\\&{plain}" if',
        '    return f"{plain}" if',
        (_MANUAL, "-k", "request"),
    ),
)
