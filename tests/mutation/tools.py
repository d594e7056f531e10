"""Faults of the commands that people run: target, postbox, selftest, doctor, explain."""

from __future__ import annotations

from tests.mutation.fault import Fault

_CONFIGURE = "tests/unit/test_configure.py"
_ONE_THING = "tests/properties/test_configure.py"
_TARGET = "tests/acceptance/test_target.py"
_MANUAL = "tests/unit/test_manual.py"
_POSTBOX = "tests/acceptance/test_postbox.py"
_POSTBOXES = "tests/unit/test_postboxes.py"
_SELFTEST = "tests/acceptance/test_selftest.py"
_LOOKS = "tests/unit/test_looks.py"

FAULTS = (
    Fault(
        "write-a-configuration-unchecked",
        "dispatch/configure.py",
        "        check_file(path, _spelled(meant))",
        "        _spelled(meant)",
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
    Fault(
        "configure-a-postbox-that-is-not-there",
        "dispatch/birth.py",
        "    if find_transcript(config.claude_dir, session_id, None) is None:",
        "    if find_transcript(config.claude_dir, session_id, None) == '':",
        (_POSTBOX, "-k", "not_shown_to_exist"),
    ),
    Fault(
        "take-any-session-for-a-postbox",
        "dispatch/birth.py",
        "    if report.session_id != session_id:",
        "    if report.session_id is None:",
        (_POSTBOX, "-k", "not_shown_to_exist"),
    ),
    Fault(
        "let-a-birth-reach-a-model",
        "dispatch/birth.py",
        "env=quiet_env(house.env, config.pass_env, config.claude_dir)",
        "env=dict(house.env)",
        (_POSTBOX, "-k", "blocked_prompt"),
    ),
    Fault(
        "configure-before-it-is-made",
        "dispatch/cli/postboxing.py",
        "    made = make_postbox(house, claude_of(house), name=name)\n",
        "    configure.set_postbox(house.places, '00000000-0000-4000-8000-000000000000', target)\n"
        "    made = make_postbox(house, claude_of(house), name=name)\n",
        (_POSTBOX, "-k", "not_configured or hangs"),
    ),
    Fault(
        "rotate-under-a-carrier",
        "dispatch/cli/postboxing.py",
        "        lease = take_lease(house.places.locks, now.session_id, timeout_s=wait,",
        "        lease = take_lease(house.places.locks, target or '-', timeout_s=wait,",
        (_POSTBOX, "-k", "under_way"),
    ),
    Fault(
        "remove-what-somebody-worked-in",
        "dispatch/cli/postboxing.py",
        "    if postboxes.has_model_turn(postbox.transcript):",
        "    if not postbox.transcript:",
        (_POSTBOX, "-k", "not_ours"),
    ),
    Fault(
        "call-an-open-postbox-ready",
        "dispatch/postboxes.py",
        "        if self.pid is not None and not self.leased:",
        "        if self.pid is not None and self.leased:",
        (_POSTBOX, "-k", "every_state"),
    ),
    Fault(
        "let-a-cold-postbox-go",
        "dispatch/postboxes.py",
        "        if left >= _SOON_DAYS:",
        "        if left >= 0:",
        (_POSTBOX, "-k", "cold"),
    ),
    Fault(
        "be-content-with-less-proof",
        "dispatch/selftest.py",
        '        if result.proof != "surfaced":',
        '        if result.proof == "none":',
        (_POSTBOXES, "-k", "strongest"),
    ),
    Fault(
        "let-the-rig-speak-for-claude",
        "dispatch/cli/selftesting.py",
        "    if missing is not None:",
        "    if missing is None and steps == []:",
        (_SELFTEST, "-k", "proves_nothing"),
    ),
    Fault(
        "leave-a-trial-behind",
        "dispatch/throwaway.py",
        "        shutil.rmtree(self.root, ignore_errors=True)",
        "        shutil.rmtree(self.root + '/work', ignore_errors=True)",
        (_SELFTEST, "-k", "with_a_claude and inside"),
    ),
    Fault(
        "call-an-untested-version-well",
        "dispatch/look_at_claude.py",
        "    if asked.version in versions.TESTED:",
        "    if asked.version >= versions.TESTED[0]:",
        (_LOOKS, "-k", "another_version"),
    ),
    Fault(
        "compare-versions-as-words",
        "dispatch/claude_version.py",
        '    return tuple(map(int, version.split("."))) < FIRST',
        '    return version < ".".join(map(str, FIRST))',
        (_LOOKS, "-k", "another_version"),
    ),
    Fault(
        "wait-for-a-claude-that-hangs",
        "dispatch/claude_version.py",
        "            timeout=within,",
        "            timeout=within + 12,",
        (_LOOKS, "-k", "bounded"),
    ),
    Fault(
        "miss-a-managed-setting",
        "dispatch/look_at_claude.py",
        '    if settings.get("disableAllHooks") is True:',
        '    if settings.get("disableAllHooks") == "yes":',
        (_LOOKS, "-k", "forbid_hooks"),
    ),
    Fault(
        "believe-a-clock-that-was-set-back",
        "dispatch/look_inside.py",
        "    if newest is not None and newest > now + _AHEAD_S:",
        "    if newest is not None and newest < now - _AHEAD_S - 1e9:",
        (_LOOKS, "-k", "tomorrow"),
    ),
    Fault(
        "let-a-stale-unit-be-well",
        "dispatch/look_at_shell.py",
        "        if OTHER in states.values():",
        "        if OTHER in states:",
        (_LOOKS, "-k", "not_whole"),
    ),
)
