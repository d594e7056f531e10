"""The faults that must not go unnoticed: one wrong line each, and the tests that watch it."""

from __future__ import annotations

from registry.record import Record

_SESSIONS = "tests/acceptance/test_k_sessions.py"
_DOOR = "tests/acceptance/test_k_door.py"
_LIMITS = "tests/acceptance/test_k_limits.py"


class Fault(Record):
    """In *file* the text *right*, which stands there once, becomes *wrong*."""

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


FAULTS = (
    Fault(
        "swap-P-and-T",
        "dispatch/post.py",
        '        binding.postbox,\n        f"{folder}',
        '        binding.target_session,\n        f"{folder}',
        (_SESSIONS, "-k", "k01"),
    ),
    Fault(
        "drop-misbound-guard",
        "carrier/binding.py",
        "    if told == resumed:",
        "    if told == resumed and not told:",
        (_SESSIONS, "-k", "k03 or k04"),
    ),
    Fault(
        "misbound-by-spelling",
        "carrier/binding.py",
        "    if told == resumed:",
        "    if target_session == postbox and told == resumed.upper():",
        (_SESSIONS, "-k", "k03"),
    ),
    Fault(
        "fall-back-to-targets-own-id",
        "carrier/binding.py",
        '        raise CarrierUnbound(name, f"carrier_session of {owner} is empty")',
        "        return target.value if target else config.carrier_session",
        (_SESSIONS, "-k", "k04"),
    ),
    Fault(
        "one-constant-for-the-result",
        "dispatch/judge.py",
        "report.session_id != binding.postbox:",
        "report.session_id not in (binding.postbox, binding.target_session):",
        (_DOOR, "-k", "k07"),
    ),
    Fault(
        "one-constant-for-the-receipt",
        "dispatch/judge.py",
        "receipt.session_id != binding.target_session:",
        "receipt.session_id not in (binding.postbox, binding.target_session):",
        (_DOOR, "-k", "k07"),
    ),
    Fault(
        "any-receipt-will-do",
        "dispatch/judge.py",
        "receipt.nonce != nonce:",
        "receipt.nonce == '':",
        (_DOOR, "-k", "k07"),
    ),
    Fault(
        "trust-subtype",
        "dispatch/judge.py",
        "    if isinstance(report, Report) and report.session_id",
        "    if isinstance(report, Report) and report.subtype == 'success':\n"
        "        return 'delivered-start', None\n"
        "    if isinstance(report, Report) and report.session_id",
        (_DOOR, _LIMITS, "-k", "k07 or k19 or k12_a_hook"),
    ),
    Fault(
        "drop-the-environment-scrub",
        "carrier/argv.py",
        "        if (name in listed or name.startswith(",
        "        if (name or name.startswith(",
        (_LIMITS, "-k", "k12"),
    ),
    Fault(
        "budget-off-the-command-line",
        "carrier/argv.py",
        '"--max-budget-usd", _money(max_budget_usd),',
        "",
        (_SESSIONS, _LIMITS, "-k", "k01 or k12"),
    ),
    Fault(
        "drive-a-running-postbox",
        "dispatch/aim.py",
        "    for row in find_again(postbox, listing):",
        "    for row in find_again('', listing):",
        (_SESSIONS, "-k", "k05"),
    ),
    Fault(
        "no-status-gate",
        "dispatch/aim.py",
        "    if aim.row.status not in wanted:",
        "    if aim.row.status in ():",
        (_SESSIONS, "-k", "k02"),
    ),
    Fault(
        "kiss-from-inside-a-carrier",
        "dispatch/kiss.py",
        "    if NESTED in house.env:",
        "    if NESTED in ():",
        (_SESSIONS, "-k", "k16"),
    ),
    Fault(
        "no-second-look-at-the-status",
        "dispatch/kiss.py",
        "    gate(aim, if_idle=errand.order.if_idle)",
        "    if leased is None:\n        gate(aim, if_idle=errand.order.if_idle)",
        (_SESSIONS, "-k", "k15"),
    ),
    Fault(
        "id-in-place-of-the-targets-name",
        "dispatch/post.py",
        "        target_id=str(result.target.id),\n        postbox=binding.postbox,",
        "        target_id=binding.target_session,\n        postbox=binding.postbox,",
        (_SESSIONS, "-k", "k06"),
    ),
    Fault(
        "no-pin-in-the-frame",
        "carrier/calls.py",
        '        "session_id": envelope.session_id,\n',
        "",
        (_DOOR, "-k", "k08"),
    ),
    Fault(
        "believe-the-row-about-its-pid",
        "carrier/door.py",
        "        if (pid := peer_pid(conn)) != row.pid:",
        "        if (pid := peer_pid(conn)) < 0:",
        (_DOOR, "-k", "k08"),
    ),
    Fault(
        "recycled-pid-is-alive",
        "registry/rows.py",
        '    return "recycled" if row.proc_start else "no-start-time"',
        "    return None",
        (_DOOR, _LIMITS, "-k", "k08 or k17"),
    ),
    Fault(
        "written-is-surfaced",
        "carrier/attempt.py",
        'WRITTEN = "written"',
        'WRITTEN = "surfaced"',
        (_DOOR, "-k", "k09"),
    ),
    Fault(
        "any-transcript-proves",
        "carrier/transcript.py",
        "if state == SURFACED and whom in self.states:",
        "if state == SURFACED and (whom := next(iter(self.states))):",
        (_DOOR, "tests/unit/test_transcript.py", "-k", "k09 or transcript"),
    ),
    Fault(
        "held-is-harmless",
        "dispatch/judge.py",
        '    "held": "door-held",\n',
        "",
        (_DOOR, "-k", "k10"),
    ),
    Fault(
        "claim-a-mode",
        "carrier/calls.py",
        '"content": envelope.line},',
        '"content": \'<m from-mode="bypass">\' + envelope.line},',
        (_DOOR, "-k", "k10 or k08"),
    ),
    Fault(
        "permit-is-copied",
        "carrier/proof.py",
        "        os.rename(permit, f",
        "        os.link(permit, f",
        (_DOOR, "tests/unit/test_proof.py"),
    ),
    Fault(
        "permit-is-not-withdrawn",
        "carrier/proof.py",
        '        os.rename(f"{attempt_dir}/{PERMIT}", f"{attempt_dir}/{WITHDRAWN}")',
        '        os.link(f"{attempt_dir}/{PERMIT}", f"{attempt_dir}/{WITHDRAWN}")',
        (_DOOR, "tests/unit/test_proof.py"),
    ),
    Fault(
        "an-emptied-folder-is-a-proof",
        "carrier/proof.py",
        '    return os.path.lexists(f"{attempt_dir}/{WITHDRAWN}") and not taken',
        "    return not taken",
        ("tests/unit/test_proof.py", "tests/unit/test_verify.py"),
    ),
    Fault(
        "an-old-attempts-folder-is-used-again",
        "carrier/layout.py",
        "                raise AttemptExists(path)\n            left.append(path)",
        "                pass\n            left.append(path)",
        ("tests/unit/test_layout.py", "tests/unit/test_attempt.py"),
    ),
    Fault(
        "an-orphan-is-not-judged-before-its-key-is-tried",
        "dispatch/kiss.py",
        "        judge_orphan(database, draft.key, draft.postbox, errand.house)\n",
        "",
        ("tests/unit/test_kiss.py",),
    ),
    Fault(
        "hook-fails-open",
        "carrier/argv.py",
        ' || exit 2"',
        '"',
        ("tests/unit/test_argv.py",),
    ),
    Fault(
        "lease-not-passed-on",
        "carrier/keeper.py",
        "        fcntl.fcntl(lease_fd, fcntl.F_SETFD, 0)",
        "        os.close(lease_fd)",
        ("tests/unit/test_run.py", "tests/unit/test_keeper.py"),
    ),
    Fault(
        "no-lease-at-all",
        "registry/locks.py",
        "        fcntl.flock(lease.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "        fcntl.flock(lease.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        ("tests/properties/test_locks.py", "tests/unit/test_locks.py"),
    ),
    Fault(
        "known-key-delivers-again",
        "dispatch/spool.py",
        "    if not known.may_be_tried:\n        return known\n    link.execute(",
        "    if known.state == QUEUED:\n        return known\n    link.execute(",
        ("tests/unit/test_spool.py", "tests/properties/test_spool.py"),
    ),
    Fault(
        "escape-sequences-are-text",
        "dispatch/line.py",
        "(*range(0x20), *range(0x7F, 0xA0))",
        "(0,)",
        ("tests/unit/test_line.py",),
    ),
    Fault(
        "line-in-the-prompt",
        "carrier/attempt.py",
        "        run = run_carrier(order, clock)",
        "        order.argv[-1] += envelopes[0].line\n        run = run_carrier(order, clock)",
        (_LIMITS, _SESSIONS, "-k", "k13 or k01"),
    ),
    Fault(
        "doubt-is-tried-again",
        "dispatch/outcome.py",
        "        return Outcome(kept.UNCERTAIN, kept.DOUBT)",
        "        return Outcome(kept.DEAD, kept.AGAIN)",
        ("tests/unit/test_outcome.py",),
    ),
    Fault(
        "doubt-holds-nobody-back",
        "dispatch/due.py",
        "    if line.state != kept.QUEUED:\n        return Halt(line, each.result)",
        "    if line.state == kept.CLAIMED:\n        return Halt(line, each.result)",
        ("tests/unit/test_due.py",),
    ),
    Fault(
        "requeue-a-doubt-without-a-look",
        "dispatch/shelf.py",
        "        if in_doubt and not looked:",
        "        if line.state == kept.CLAIMED and not looked:",
        ("tests/unit/test_shelf.py",),
    ),
    Fault(
        "order-by-key",
        "dispatch/due.py",
        "state <> ? ORDER BY id LIMIT ?",
        "state <> ? ORDER BY key LIMIT ?",
        ("tests/unit/test_due.py",),
    ),
    Fault(
        "more-than-a-receiver-takes",
        "dispatch/pace.py",
        "    return max(BURST - int(gone), 0)",
        "    return max(BURST - int(gone), BURST)",
        ("tests/unit/test_pace.py", "tests/unit/test_due.py"),
    ),
    Fault(
        "the-same-text-twice-at-once",
        "dispatch/due.py",
        "        if halt is None and each.line.digest in said:",
        "        if halt is None and each.line.key in said:",
        ("tests/unit/test_due.py",),
    ),
    Fault(
        "a-jump-of-the-clock-ages-lines",
        "dispatch/pulse.py",
        "LONGEST_STEP_S = 900.0",
        "LONGEST_STEP_S = 1e12",
        ("tests/unit/test_pulse.py", "tests/unit/test_due.py"),
    ),
    Fault(
        "keep-after-any-failure",
        "dispatch/waiting.py",
        "_STATUSES = (75, 76)",
        "_STATUSES = (3, 75, 76)",
        ("tests/unit/test_waiting.py", "tests/unit/test_kiss_queue.py"),
    ),
    Fault(
        "claim-before-the-permit-is-out",
        "dispatch/rounds.py",
        "    post.lay_out(order, timed)\n    try:\n        _check(lease)\n"
        "        claimed = claim(timed)",
        "    claimed = claim(timed)\n    try:\n        _check(lease)\n"
        "        post.lay_out(order, timed)",
        ("tests/unit/test_rounds.py",),
    ),
    Fault(
        "a-damaged-line-goes-out",
        "dispatch/serve.py",
        "    damaged = [each for each in ready if not each.line.is_whole]",
        "    damaged = [each for each in ready if not each.line.key]",
        ("tests/unit/test_serve.py",),
    ),
    Fault(
        "a-denial-is-not-heard",
        "dispatch/late.py",
        "    told = None if approved else weigh_notices(look.late)",
        "    told = None if approved else weigh_notices(())",
        ("tests/unit/test_late.py",),
    ),
    Fault(
        "no-ear-stays",
        "carrier/door.py",
        "            if self._staying is not None and ear.awaits_answers():",
        "            if self._staying is not None and not ear.notices:",
        ("tests/acceptance/test_held.py", "-k", "quiet_process"),
    ),
    Fault(
        "the-keeper-ends-the-ear",
        "carrier/ward.py",
        "if pid != ear]",
        "if pid]",
        ("tests/acceptance/test_held.py", "-k", "quiet_process"),
    ),
    Fault(
        "the-ear-keeps-the-lease",
        "carrier/stay.py",
        "        if number > 2 and number not in kept:",
        "        if number > 9000 and number not in kept:",
        ("tests/acceptance/test_held.py", "-k", "postbox_is_free"),
    ),
    Fault(
        "withdraw-the-first-line-first",
        "carrier/proof.py",
        "for folder in reversed(folders) if not withdraw(folder)][::-1]",
        "for folder in folders if not withdraw(folder)]",
        ("tests/unit/test_proof.py", "tests/unit/test_run.py"),
    ),
    Fault(
        "a-sum-of-drops-is-not-read",
        "carrier/notices.py",
        '    dropped = given.get("dropped_msg_ids")',
        '    dropped = given.get("no_such_field")',
        ("tests/unit/test_notices.py", "tests/unit/test_door_rounds.py"),
    ),
    Fault(
        "two-carriers-when-the-lock-is-replaced",
        "carrier/layout.py",
        "        elif _is_running(path, postbox):",
        "        elif _is_running(path, name):",
        ("tests/unit/test_layout.py",),
    ),
    Fault(
        "the-ballast-is-never-given",
        "dispatch/keep.py",
        "            if not give_ballast(house.places):",
        "            if give_ballast is not None:",
        ("tests/unit/test_keep.py",),
    ),
    Fault(
        "a-damaged-file-is-deleted",
        "dispatch/salvage.py",
        "    _keep(places.database, moved_to)\n",
        "    open(moved_to, 'w').close()\n",
        ("tests/unit/test_fsck.py",),
    ),
)
