"""Faults of senders and readers: attribution, signatures, answers, pages, cursors."""

from __future__ import annotations

from tests.mutation.fault import Fault

_READING = "tests/unit/test_reading.py"
_READERS = "tests/acceptance/test_a_readers.py"
_FSCK = "tests/unit/test_fsck.py"
_SENDERS = "tests/unit/test_senders.py"
_WHOLE = "tests/unit/test_whole.py"
_DATABASE = "tests/unit/test_database.py"
_READER = "tests/unit/test_reader.py"
_RESOLVE = "tests/unit/test_resolve.py"
_SPEAKING = "tests/acceptance/test_a_senders.py"
_INTAKE = "tests/unit/test_intake.py"
_SIGN = "tests/unit/test_sign.py"


FAULTS = (
    Fault(
        "a-page-that-nobody-got-is-read",
        "dispatch/cli/reading.py",
        "not asked.moves or not is_heard():",
        "not asked.moves:",
        (_READING, "-k", "nobody_got"),
    ),
    Fault(
        "cursor-before-the-page",
        "dispatch/cli/reading.py",
        "            page = _page(link, asked, who)\n",
        "            page = _page(link, asked, who)\n"
        "        if who is not None and page.next_cursor is not None and asked.moves:\n"
        "            _move(database, who, page.next_cursor)\n",
        (_READERS, "-k", "a04_killed"),
    ),
    Fault(
        "peek-moves",
        "dispatch/cli/reading.py",
        "return self.resume and not self.peek and",
        "return self.resume and",
        (_READERS, "-k", "a04_a_peek"),
    ),
    Fault(
        "a-look-moves",
        "dispatch/reader.py",
        "return (self.target, self.name, self.correlation) == (None, None, None)",
        "return (self.target, self.name) == (None, None)",
        (_READERS, "-k", "a06_nothing"),
    ),
    Fault(
        "a-level-does-not-move",
        "dispatch/reader.py",
        "return (self.target, self.name, self.correlation) == (None, None, None)",
        "return (self.target, self.name, self.correlation, self.level) == (None,) * 4",
        (_READERS, "-k", "a06_a_level"),
    ),
    Fault(
        "stored-cursor-reset",
        "dispatch/cursor.py",
        "        raise CursorInvalid(reader.cursor, tip)",
        "        return 0",
        (_READERS, "-k", "a06_a_cursor"),
    ),
    Fault(
        "cursor-ahead-is-taken",
        "dispatch/cursor.py",
        "    if number > tip:",
        "    if number > tip + 9:",
        (_READERS, "-k", "a05_an_ack"),
    ),
    Fault(
        "back-without-a-word",
        "dispatch/cursor.py",
        "    if not rewind and own is not None and number < own:",
        "    if not rewind and own is not None and number < own - 9:",
        (_READERS, "-k", "a05_back"),
    ),
    Fault(
        "pythons-own-numbers",
        "dispatch/cursor.py",
        "    if not (digits.isascii() and digits.isdecimal()):",
        "    if not digits.isdecimal():",
        (_READERS, "-k", "a05_an_ack"),
    ),
    Fault(
        "cursor-judged-before-the-session",
        "dispatch/cli/reading.py",
        "            who = _named(link, house)\n            tip = reader.tip(link)",
        "            next_place(cursor, None, reader.tip(link), rewind=rewind)\n"
        "            who = _named(link, house)\n"
        "            tip = reader.tip(link)",
        (_READERS, "-k", "a05_who"),
    ),
    Fault(
        "refused-session-has-a-cursor",
        "dispatch/cli/answering.py",
        '        return {"session_id": error.session}\n',
        '        return {"session_id": error.session, "cursor": None}\n',
        (_READERS, "-k", "a05_who"),
    ),
    Fault(
        "deleted-sender-reads",
        "dispatch/cli/reading.py",
        "else senders.present(link, house.speaker)",
        "else senders.find(link, house.speaker)",
        (_READERS, "-k", "a08_the_reads"),
    ),
    Fault(
        "register-adopts-the-ambient-id",
        "dispatch/cli/reading.py",
        "session = _new_id(session_id, name)",
        "session = _new_id(house.speaker, name)",
        (_READERS, "-k", "a02_register"),
    ),
    Fault(
        "second-unregister-is-a-first",
        "dispatch/senders.py",
        '"UPDATE reader SET deleted_at = ? WHERE session = ? AND deleted_at = ?",\n'
        '        (now, canonical(session) or "", NEVER),',
        '"UPDATE reader SET deleted_at = ? WHERE session = ?",\n'
        '        (now, canonical(session) or ""),',
        (_READERS, "-k", "a08_a_second"),
    ),
    Fault(
        "a-late-reader-moves-back",
        "dispatch/senders.py",
        'WHERE session = ? AND cursor = ? AND deleted_at = ?",\n'
        "        (CURSOR_0 + cursor, reader.session, _kept_as(reader.cursor), NEVER),",
        'WHERE session = ? AND deleted_at = ?",\n'
        "        (CURSOR_0 + cursor, reader.session, NEVER),",
        (_SENDERS, "-k", "seen"),
    ),
    Fault(
        "deleted-target-is-kissed",
        "dispatch/senders.py",
        "        raise TargetDeleted(known.session, known.deleted_at)",
        "        return",
        (_READERS, "-k", "a08_a_deleted_target"),
    ),
    Fault(
        "ids-of-lost-entries-again",
        "dispatch/saving.py",
        'max(wreck.counter(old, "event"), wreck.counter(new, "event"))',
        'wreck.counter(new, "event")',
        (_FSCK, "-k", "given_to_no_other"),
    ),
    Fault(
        "a-lost-cursor-is-a-fresh-one",
        "dispatch/saving.py",
        '    "cursor": LOST_CURSOR,',
        '    "cursor": LOST_CURSOR + 1,',
        (_FSCK, "-k", "forgotten"),
    ),
    Fault(
        "a-reader-of-garbage",
        "dispatch/whole.py",
        "return all(type(row[name]) is kind for name, (kind, _) in _READER.items()) and fits(",
        "return fits(",
        (_WHOLE, "-k", "reader"),
    ),
    Fault(
        "version-by-its-word",
        "dispatch/database.py",
        "                if found != version:",
        "                if found < version:",
        (_DATABASE, "-k", "flipped"),
    ),
    Fault(
        "full-page-is-the-last",
        "dispatch/reader.py",
        "len(events) == limit)",
        "len(events) > limit)",
        (_READERS, "-k", "a07"),
    ),
    Fault(
        "next-cursor-is-the-last-printed",
        "dispatch/reader.py",
        "max((event.id for event in events), default=after)",
        "events[-1].id if events else after",
        (_READERS, "-k", "a04_the_next"),
    ),
    Fault(
        "first-resume-at-the-start",
        "dispatch/cursor.py",
        "return 0 if from_start else tip",
        "return 0",
        (_READERS, "-k", "a04_a_first"),
    ),
    Fault(
        "page-by-a-scan",
        "dispatch/reader.py",
        "WHERE id > ? ORDER BY id LIMIT ?",
        "WHERE +id > ? ORDER BY id LIMIT ?",
        (_READER, "-k", "costs or steps"),
    ),
    Fault(
        "the-weakest-variable-first",
        "dispatch/sender.py",
        "for name in VARIABLES",
        "for name in VARIABLES[::-1]",
        (_SPEAKING, "-k", "a01_every_verb"),
    ),
    Fault(
        "done-by-the-author",
        "dispatch/shelf.py",
        "keep.note(link, journal.DROPPED, result, {}, now, by=house.speaker)",
        "keep.note(link, journal.DROPPED, result, {}, now, by=result.sender)",
        (_SPEAKING, "-k", "a01_what"),
    ),
    Fault(
        "a-receipt-from-nobody",
        "carrier/visit.py",
        "        sender=envelope.sender,",
        '        sender="anonymous",',
        (_SPEAKING, "-k", "a02_an_unregistered"),
    ),
    Fault(
        "every-line-is-signed",
        "dispatch/intake.py",
        "    if order.sign:",
        "    if order.sender:",
        (_INTAKE,),
    ),
    Fault(
        "a-sender-writes-the-header",
        "dispatch/sign.py",
        "from {_shown(sender)}, delivery",
        "from {sender}, delivery",
        (_SIGN,),
    ),
    Fault(
        "a-header-that-promises-anybody",
        "dispatch/sign.py",
        "    is_plain = _is_plain(sender) and can_be_answered(sender, config)",
        "    is_plain = _is_plain(sender)",
        (_SIGN,),
    ),
    Fault(
        "the-header-is-not-counted",
        "dispatch/intake.py",
        "    if len(line) > MOST_BYTES:",
        "    if len(line) > MOST_BYTES << 1:",
        (_INTAKE,),
    ),
    Fault(
        "an-answer-to-any-word",
        "dispatch/intake.py",
        "    if not can_be_answered(sender, config):",
        "    if not sender:",
        (_INTAKE,),
    ),
    Fault(
        "the-relay-kisses-who-left",
        "dispatch/due.py",
        "        senders.refuse_deleted_target(link, aim.row.session_id)\n",
        "",
        (_SPEAKING, "-k", "a08_a_target_that_left_while"),
    ),
    Fault(
        "a-sender-that-left-is-not-warned",
        "dispatch/kiss.py",
        "    return replace(result, warning=errand.telling.result.warning)",
        "    return result",
        (_SPEAKING, "-k", "a08_a_sender"),
    ),
    Fault(
        "a-closed-stdout-is-heard",
        "dispatch/cli/speech.py",
        '    return not isinstance(getattr(sys.stdout, "name", None), int)',
        "    return True",
        (_READERS, "-k", "a04_a_page_that"),
    ),
    Fault(
        "reading-begins-when-it-works",
        "dispatch/cli/reading.py",
        "        if asked.moves and who is not None and who.cursor is None:",
        "        if asked.moves and who is None:",
        (_READERS, "-k", "a04_reading_begins"),
    ),
    Fault(
        "ctrl-c-is-a-page-read",
        "dispatch/cli/reading.py",
        "            return verdict.exit\n        if who",
        "            return _move(database, who, page.next_cursor)\n        if who",
        (_READING, "-k", "ctrl_c"),
    ),
    Fault(
        "a-sender-as-long-as-it-likes",
        "carrier/argv.py",
        "else ascii(value))[:_LONGEST]",
        "else ascii(value))",
        (_SPEAKING, "-k", "any_length"),
    ),
)
