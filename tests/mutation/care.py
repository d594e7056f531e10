"""Faults of the doctor and of the units that start the relay."""

from __future__ import annotations

from tests.mutation.fault import Fault

_HEALTH = "tests/unit/test_health.py"
_A_HEALTH = "tests/acceptance/test_a_health.py"
_UNITS = "tests/unit/test_units.py"
_PLACE = "tests/unit/test_unit_place.py"
_CHECKING = "tests/unit/test_checking.py"

FAULTS = (
    Fault(
        "remember-what-was-healthy",
        "dispatch/health.py",
        "    return tuple(_item(each, house) for each in looks)",
        '    return check.__dict__.setdefault("kept", tuple(_item(each, house) for each in looks))',
        (_HEALTH, "-k", "at_the_call"),
    ),
    Fault(
        "miss-no-registry",
        "dispatch/look_around.py",
        '        return ill(f"there is no folder {folder}", fix)',
        '        return unknown(f"there is no folder {folder}")',
        (_A_HEALTH, "-k", "taken_away"),
    ),
    Fault(
        "call-ill-what-cannot-be-looked-at",
        "dispatch/health.py",
        '        found = unknown(f"cannot',
        '        found = ill(f"cannot',
        (_HEALTH, "-k", "hides_no_other"),
    ),
    Fault(
        "call-ill-what-is-not-known",
        "dispatch/cli/checking.py",
        "if item.ok is False]",
        "if not item.ok]",
        (_CHECKING,),
    ),
    Fault(
        "let-shut-doors-be-well",
        "dispatch/look_around.py",
        "    return ill(detail) if len(shut) == len(rows) else well(detail)",
        "    return well(detail)",
        (_HEALTH, "-k", "doors"),
    ),
    Fault(
        "hide-what-could-not-be-seen",
        "dispatch/look_around.py",
        "    if blind:",
        "    if not seen:",
        (_HEALTH, "-k", "odd_process"),
    ),
    Fault(
        "believe-a-memory-of-the-ledger",
        "dispatch/look_around.py",
        "read_ledger(path, None, ",
        "read_ledger(path, house.places.ledger_memory, ",
        (_HEALTH, "-k", "afresh"),
    ),
    Fault(
        "keep-lines-on-a-network",
        "dispatch/look_inside.py",
        "        refuse_network(state, mountinfo)\n",
        "",
        (_HEALTH, "-k", "network"),
    ),
    Fault(
        "assume-that-locks-hold",
        "dispatch/look_inside.py",
        "        refuse_without_locks(state)\n",
        "",
        (_HEALTH, "-k", "without_locks"),
    ),
    Fault(
        "trust-a-part-that-is-a-link",
        "registry/home.py",
        "        _check_folder(part, os.lstat(part))",
        "        os.lstat(part)",
        (_HEALTH, "-k", "link_in_the_place"),
    ),
    Fault(
        "miss-a-relay-that-has-nothing-to-do",
        "dispatch/look_inside.py",
        "    if since and now - max(",
        "    if now - max(",
        (_HEALTH, "-k", "missed_only"),
    ),
    Fault(
        "label-by-its-beginning",
        "dispatch/units/__init__.py",
        "    return any(mark in (line, *line.split()) for",
        "    return any(mark in line for",
        (_A_HEALTH, "-k", "whole"),
    ),
    Fault(
        "tell-a-unit-the-whole-environment",
        "dispatch/units/__init__.py",
        "for name in _NAMES if env.get(name)}",
        "for name in env if env.get(name)}",
        (_A_HEALTH, "-k", "secret"),
    ),
    Fault(
        "restart-at-once",
        "dispatch/units/__init__.py",
        "THROTTLE_S = 30",
        "THROTTLE_S = 5",
        (_A_HEALTH, "-k", "throttle"),
    ),
    Fault(
        "end-the-carrier-with-the-pass-by-systemd",
        "dispatch/units/systemd.py",
        "KillMode=process",
        "KillMode=control-group",
        (_A_HEALTH, "-k", "outlives"),
    ),
    Fault(
        "end-the-carrier-with-the-pass-by-launchd",
        "dispatch/units/launchd.py",
        '"AbandonProcessGroup": True',
        '"AbandonProcessGroup": False',
        (_A_HEALTH, "-k", "outlives"),
    ),
    Fault(
        "overwrite-the-log",
        "dispatch/units/systemd.py",
        "StandardError=append:",
        "StandardError=truncate:",
        (_A_HEALTH, "-k", "log"),
    ),
    Fault(
        "let-systemd-read-percent-signs",
        "dispatch/units/systemd.py",
        '    return word.replace("%", "%%")',
        "    return word",
        (_UNITS,),
    ),
    Fault(
        "let-systemd-read-dollars",
        "dispatch/units/systemd.py",
        "ExecStart=:{program}",
        "ExecStart={program}",
        (_UNITS,),
    ),
    Fault(
        "let-a-newline-into-a-unit",
        "dispatch/units/__init__.py",
        'any(c < " " or c in',
        "any(c in",
        (_UNITS, "-k", "unit_file_can_hold"),
    ),
    Fault(
        "leave-a-timer-without-its-service",
        "dispatch/units/place.py",
        "reversed(unit.files)",
        "unit.files",
        (_PLACE,),
    ),
    Fault(
        "write-over-a-masked-unit",
        "dispatch/units/place.py",
        "os.path.islink(path) or not os.path.isfile(path)",
        "os.path.isdir(path)",
        (_PLACE,),
    ),
    Fault(
        "take-a-label-as-a-path",
        "dispatch/units/__init__.py",
        "plain = label.isascii() and label",
        'plain = label.isascii() and label.replace("/", "")',
        (_UNITS, "-k", "label"),
    ),
    Fault(
        "take-others-out-of-the-crontab",
        "dispatch/units/cron.py",
        "grep -vxF ",
        "grep -vF ",
        (_UNITS, "-k", "cron_is_told"),
    ),
    Fault(
        "write-over-a-crontab-that-cannot-be-read",
        "dispatch/units/cron.py",
        "'no crontab for ' || exit 1",
        "'no crontab for '",
        (_UNITS, "-k", "cannot_be_read"),
    ),
    Fault(
        "write-over-a-unit-that-differs",
        "dispatch/units/place.py",
        "        if state == OTHER:",
        "        if False:",
        (_PLACE,),
    ),
    Fault(
        "take-away-what-others-made",
        "dispatch/units/place.py",
        "        if _is_strange(file.path, unit.hint):",
        "        if False:",
        (_PLACE,),
    ),
)
