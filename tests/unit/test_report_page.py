"""The page of a report: the figures as pictures, and nothing from outside that acts."""

from __future__ import annotations

import html.parser
import json
import re

import pytest

from dispatch.report.as_object import advice_of, as_json
from dispatch.report.charts import bars_of, length_bar, nice_top, share_bar, step_rows
from dispatch.report.courses import FATES
from dispatch.report.page import Period, page
from dispatch.report.rows import MOST
from dispatch.report.style import STYLE
from tests.fakes.courses import an_entry, counted, delivered, held
from tests.fakes.household import BEGAN, key_of

HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m\u202e"
VOID = {"meta", "br"}
WEEK = Period(BEGAN - 604_800, BEGAN)


class Reader(html.parser.HTMLParser):
    """What a browser would make of a page: its elements, its text; every one is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.ids, self.open = [], "", [], []
        self.feed(text)
        assert [] == self.open

    def handle_starttag(self, tag, attrs):
        """Count it."""
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Closed at once."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        """It is the one that was opened last."""
        assert tag == self.open.pop()

    def handle_data(self, data):
        """Text as it is shown."""
        self.text += data


def read(*entries, period=WEEK, waiting=()):
    """The page of *entries*, read."""
    return Reader(page(counted(*entries, waiting=waiting), period))


def everything(target="fable"):
    """A delivery of each fate."""
    return [
        *delivered(1, target=target),
        an_entry("accepted", number=2, target=target),
        an_entry("judged", "delivered-start", 1, number=2, target=target),
        an_entry("queued", "queued", number=3, target=target),
        *held(4),
        an_entry("accepted", number=5, target=target, reason=target),
        an_entry("judged", "receipt-missing", 1, number=5, target=target, reason=target),
        an_entry("accepted", number=6, target=target),
        an_entry("judged", "carrier-exit", 1, number=6, target=target, reason=target),
        an_entry("refused", "usage", number=7, target=None),
        *held(8, 0, an_entry("verified", "expired", 99, number=8, reason=target)),
        an_entry("judged", "door-mismatch", 1, number=9, target=target),
    ]


def test_it_needs_nothing_else():
    """No script, no address, no font; a policy that would allow none."""
    text = page(counted(*everything()), WEEK)
    found = Reader(text)

    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert {"http-equiv": "Content-Security-Policy", "content": policy} in [
        attrs for _, attrs in found.tags
    ]
    names = {tag for tag, _ in found.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "base", "form"}
    assert not re.search(r"https?:|url\(|@import|@font-face|javascript:", text)
    used = {name for _, attrs in found.tags for name in attrs}
    assert not used & {"src", "style", "onclick", "onload"}
    assert all(a["href"].startswith("#") for _, a in found.tags if "href" in a)


def test_it_is_read_right_in_whatever_encoding():
    """ASCII, and what is not stands as a reference."""
    text = page(counted(*delivered(target="ünï")), WEEK)

    assert text.isascii()
    assert "ünï" in Reader(text).text


def test_a_name_from_outside_is_text():
    """It makes no element, ends no attribute, and none of its characters acts."""
    plain, found = read(*everything("other")), read(*everything(HOSTILE))

    assert [tag for tag, _ in plain.tags] == [tag for tag, _ in found.tags]
    assert [set(attrs) for _, attrs in plain.tags] == [set(attrs) for _, attrs in found.tags]
    shown = "<script>alert(1)</script>\"'&\\x1b[31m\\u202e"
    assert shown in found.text
    assert shown in [attrs.get("title") for _, attrs in found.tags]


def test_a_target_that_was_asked_for_is_text_too():
    """In the title and in the heading."""
    found = read(*delivered(), period=Period(None, BEGAN, "<b>x</b>"))

    assert "zdo report to <b>x</b>" in found.text
    assert "b" not in [tag for tag, attrs in found.tags if not attrs and tag != "b"]
    assert "Deliveries to <b>x</b>" in found.text


def test_who_hears_the_page_gets_the_figures():
    """Language, one heading of each rank in order, pictures with title and description, tables."""
    found = read(*everything())
    tags = [tag for tag, _ in found.tags]

    assert ("html", {"lang": "en"}) == found.tags[0]
    assert 1 == tags.count("h1") == tags.count("main")
    assert tags.index("h1") < tags.index("h2")
    pictures = [attrs for tag, attrs in found.tags if tag == "svg"]
    assert all(attrs.get("role") == "img" or attrs.get("aria-hidden") for attrs in pictures)
    assert len(found.ids) == len(set(found.ids))
    (days,) = [attrs["aria-labelledby"] for attrs in pictures if "aria-labelledby" in attrs]
    assert set(days.split()) <= set(found.ids)
    assert all(attrs.get("scope") for tag, attrs in found.tags if tag == "th")
    links = {a["href"][1:] for _, a in found.tags if "href" in a}
    assert links <= set(found.ids)


def test_every_fate_and_class_is_on_it():
    """With its figure."""
    found, told = read(*everything()), counted(*everything())

    for fate in FATES:
        assert fate in found.text
    for name, _ in told.classes:
        assert (name or "under way") in found.text
    assert "In doubt: 2" in found.text
    assert "Held for approval: 2" in found.text
    assert "1 of them still wait" in found.text
    assert "Not delivered: 2" in found.text


def test_what_to_do_is_said_beside_each_doubt():
    """The very command; with the id where the command has none."""
    found = read(*everything())

    assert f"zdo verify {key_of(5)}" in found.text
    assert f"{key_of(9)}look who the target is now: zdo sessions" in found.text
    assert f"look: zdo show {key_of(1)}" == advice_of("of-a-later-zdo", key_of(1))


def test_nothing_to_show_is_said():
    """Not an empty picture, and how to get further."""
    found = read()

    assert "No deliveries in this time" in found.text
    assert "svg" not in [tag for tag, _ in found.tags]


def test_parts_without_figures_are_left_out():
    """No heading over nothing; no measure of what did not happen."""
    found = read(an_entry("refused", "usage"))

    assert "In doubt" not in found.text
    assert "Held" not in found.text
    assert "Not delivered" not in found.text
    assert "Nothing surfaced in this time" in found.text
    assert "0held or in doubt; 0 retries" in found.text


def test_held_lines_that_all_have_their_answer():
    """Nobody is asked for anything."""
    found = read(*held(1, 0, an_entry("verified", "surfaced", 9, proof="surfaced")))

    assert "All of them have their answer" in found.text
    assert "ask" not in " ".join(attrs.get("class") or "" for _, attrs in found.tags).split()


def test_the_tile_leads_to_what_needs_somebody():
    """To the doubts, or else to the held lines."""
    hrefs = [attrs["href"] for _, attrs in read(*held()).tags if "href" in attrs]

    assert ["#held"] == hrefs


def test_long_lists_are_counted_beyond_some():
    """The page stays one that a browser opens."""
    many = [each for n in range(MOST + 5) for each in held(n)]
    assert "and 5 more: zdo report --json" in read(*many).text


@pytest.mark.parametrize(
    ("most", "top"), [(0, 2), (1, 2), (3, 3), (5, 6), (7, 8), (9, 10), (219, 300), (1001, 2000)]
)
def test_a_scale_ends_at_a_plain_number(most, top):
    """With room for all."""
    assert top == nice_top(most)


def test_bars_have_no_gaps():
    """A day each for a short time; from the first delivery when all is asked for."""
    days = counted(*delivered(1, -86_400 * 3), *delivered(2)).days

    week = bars_of(days, BEGAN - 604_800, BEGAN)
    assert (8, "2026-11-23", "2026-11-30") == (len(week), week[0].first, week[-1].last)
    assert [0, 0, 0, 0, 1, 0, 0, 1] == [bar.deliveries for bar in week]
    assert [1, 0, 0, 1] == [bar.deliveries for bar in bars_of(days, None, BEGAN)][-4:]


@pytest.mark.parametrize(("back", "width"), [(61, 1), (62, 7), (400, 7), (440, 30), (40_000, 646)])
def test_bars_of_a_long_time_are_wider(back, width):
    """Never more than a screen has room for, and none of the deliveries is lost."""
    days = counted(*delivered(1, -86_400.0 * back), *delivered(2)).days
    bars = bars_of(days, None, BEGAN)

    assert len(bars) <= 62
    assert 2 == sum(bar.deliveries for bar in bars)
    assert (bars[0].first == bars[0].last) == (width == 1)


def test_years_of_nothing_are_not_drawn():
    """Who asks since 1970 sees the time that has deliveries."""
    days = counted(*delivered(1, -86_400 * 9), *delivered(2)).days

    assert 10 == len(bars_of(days, 0.0, BEGAN))


def test_what_is_there_is_seen():
    """One of a million has a bar, none has not."""
    assert 'width="0.800"' in length_bar(1, 1_000_000)
    assert 'width="0.000"' in length_bar(0, 0)
    assert "<rect" not in share_bar(dict.fromkeys(FATES, 0))
    assert "aria-hidden" in share_bar(dict.fromkeys(FATES, 1))


def test_the_distribution_is_cut_at_its_ends():
    """Empty classes in between are shown."""
    found = counted(*delivered(1, took=1.5), *delivered(2, took=20))

    assert [("1 s to 2 s", 1), ("2 s to 5 s", 0), ("5 s to 10 s", 0), ("10 s to 30 s", 1)] == list(
        step_rows(found)
    )


def test_the_object_has_every_list_whole():
    """Nothing is cut, and all of it is JSON."""
    many = [each for n in range(MOST + 5) for each in held(n)]
    told = as_json(counted(*many, *everything()))

    assert json.loads(json.dumps(told)) == told
    assert [
        "entries", "deliveries", "fates", "classes", "days", "to_surfaced", "to_door", "held",
        "doubt", "dead", "tries", "targets",
    ] == list(told)  # fmt: skip
    assert MOST + 5 == len(told["held"])
    assert [None] == [each["under_s"] for each in told["to_surfaced"]["steps"]][-1:]


def colours(text):
    """The colours that *text* names, as numbers from 0 to 255."""
    found = dict(re.findall(r"--([a-z-]+):#([0-9a-f]+)", text))
    whole = {
        name: c if len(c) == 6 else "".join(2 * each for each in c) for name, c in found.items()
    }
    return {name: tuple(bytes.fromhex(each)) for name, each in whole.items()}


def contrast(one, other):
    """As WCAG 2 has it: from 1 to 21."""

    def light(colour):
        parts = [c / 255 for c in colour]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_words_and_bars_are_told_from_the_ground():
    """In light and in dark: words 4.5 to 1, bars 3 to 1."""
    bright, dark = STYLE.split("@media (prefers-color-scheme:dark)")
    for each in (colours(bright), colours(dark.partition("}}")[0])):
        grounds = (each["card"], each["ground"])
        for name in ("ink", "soft", "accent"):
            assert min(contrast(each[name], ground) for ground in grounds) >= 4.5, name
        assert contrast(each["warn-ink"], each["warn"]) >= 4.5
        for name in (*FATES, "plain"):
            assert contrast(each[name], each["card"]) >= 3, name
