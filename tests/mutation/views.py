"""Faults of the report: what is counted, what it measures, what its page lets through."""

from __future__ import annotations

from tests.mutation.fault import Fault

_FIGURES = "tests/unit/test_figures.py"
_GATHER = "tests/unit/test_gather.py"
_PAGE = "tests/unit/test_report_page.py"
_LINES = "tests/unit/test_report_lines.py"
_REPORT = "tests/acceptance/test_report.py"
_BROWSER = "tests/acceptance/test_report_page.py"

FAULTS = (
    Fault(
        "count-a-refused-repetition-as-the-line",
        "dispatch/report/courses.py",
        "                continue  # another kiss",
        "                known.kind = entry.kind  # another kiss",
        (_FIGURES, "-k", "became_of_a_delivery"),
    ),
    Fault(
        "call-a-line-in-doubt-surfaced",
        "dispatch/report/courses.py",
        "        if verdict is None or verdict.fate == OPEN:\n",
        "        if verdict is None or (verdict.fate == OPEN and self.seen_at is None):\n",
        (_FIGURES, "-k", "became_of_a_delivery"),
    ),
    Fault(
        "measure-from-the-last-try",
        "dispatch/report/courses.py",
        "        if known.kind == journal.REFUSED:\n",
        "        if entry.kind in journal.BEGUN:\n",
        (_FIGURES, "-k", "first_entry"),
    ),
    Fault(
        "call-dead-what-waits-for-its-next-try",
        "dispatch/report/courses.py",
        "        if self.key in waiting or self.kind in _TELL_NOTHING:",
        "        if self.kind in _TELL_NOTHING:",
        (_FIGURES, "-k", "next_try"),
    ),
    Fault(
        "take-quantiles-one-too-far",
        "dispatch/report/spread.py",
        "divmod(part * (len(ordered) - 1), 1)",
        "divmod(part * len(ordered) - part / 2, 1)",
        ("tests/properties/test_figures.py", "-k", "quantiles"),
    ),
    Fault(
        "measure-a-delivery-from-where-the-report-begins",
        "dispatch/report/gather.py",
        "        known = {key for (key,) in link.execute(asked, (*first, after))}",
        "        known = {key for (key,) in link.execute(asked, (*first, 0))}",
        (_GATHER, "-k", "began_since"),
    ),
    Fault(
        "stop-at-the-first-older-entry",
        "dispatch/report/gather.py",
        "    while old < DOUBTED:\n",
        "    while not old:\n",
        (_GATHER, "-k", "wrong_for_hundreds"),
    ),
    Fault(
        "let-a-name-be-an-element",
        "dispatch/report/charts.py",
        "    return html.escape(clean(text))",
        "    return clean(text)",
        (_PAGE, "-k", "from_outside or asked_for"),
    ),
    Fault(
        "let-the-page-be-wider-than-a-telephone",
        "dispatch/report/style.py",
        ".rows tr{display:flex;flex-wrap:wrap;",
        ".rows tr{display:flex;white-space:nowrap;",
        (_BROWSER, "-k", "fits"),
        needs="chromium",
    ),
    Fault(
        "let-scripts-run",
        "dispatch/report/page.py",
        "default-src 'none'; ",
        "",
        (_BROWSER, "-k", "policy"),
        needs="chromium",
    ),
    Fault(
        "replace-a-pipe-by-a-page",
        "dispatch/cli/reporting.py",
        "        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):",
        "        if os.path.isdir(path):",
        (_REPORT, "-k", "cannot_be_written"),
    ),
    Fault(
        "let-a-name-act-on-a-terminal",
        "dispatch/report/wording.py",
        '    text = clean("(no address)" if name is None else name)',
        '    text = "(no address)" if name is None else name',
        (_LINES, "-k", "acts"),
    ),
)
