"""The page of `zdo report --html` in a real browser: shown whole, and nothing in it acts."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dispatch.report import page as pages
from dispatch.report.courses import FATES
from dispatch.rig.rig import Rig
from tests.fakes.courses import counted
from tests.unit.test_report_page import HOSTILE, WEEK, everything

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# A test that is passed over for want of a browser says so at the end of the run.
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="NO BROWSER: the report's page is not looked at; install chromium"
)
# Says how wide each page in a frame is, and what its ground is.
MEASURE = """\
<script>onload = () => {
  document.title = JSON.stringify([...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument.documentElement
    return [page.scrollWidth, getComputedStyle(page.querySelector("body")).backgroundColor]
  }))
}</script>"""


def browsed(page, folder, *flags):
    """The elements that a browser makes of *page*, and what it complains of."""
    path = Path(folder, "page.html")
    path.write_text(page, encoding="utf-8")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--hide-scrollbars",
        "--enable-logging=stderr", f"--user-data-dir={folder}/profile", "--dump-dom", *flags,
        f"file://{path}",
    ]  # fmt: skip
    ended = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    return ended.stdout, [line for line in ended.stderr.splitlines() if "CONSOLE" in line]


def measured(page, folder, *flags):
    """Width and ground of *page* in frames of a telephone's and of a wide screen's width."""
    held = html.escape(page)
    frames = "".join(
        f'<iframe style="width:{width}px;height:900px;border:0" srcdoc="{held}"></iframe>'
        for width in (360, 1600)
    )
    shown, _ = browsed(f"<!DOCTYPE html><body>{frames}{MEASURE}", folder, *flags)
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", shown)[1]))


def test_nothing_from_outside_acts(tmp_path):
    """A name that is a script is text; the browser has nothing to complain of."""
    page = pages.page(counted(*everything(HOSTILE)), WEEK)

    shown, complaints = browsed(page, tmp_path)

    assert [] == complaints
    assert "<script" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert 9 == int(re.search(r"<b>(\d+)</b><span>deliveries", shown)[1])


def test_its_policy_would_stop_a_script(tmp_path):
    """Should one ever get in, it does not run, and the browser says so."""
    page = pages.page(counted(*everything()), WEEK)
    evil = page.replace("</main>", "<script>document.body.id = 'evil'</script></main>")

    shown, complaints = browsed(evil, tmp_path)

    assert "Content Security Policy" in "".join(complaints)
    assert '<body id="evil"' not in shown


@pytest.mark.parametrize(
    ("flags", "ground"), [((), "246"), (("--blink-settings=preferredColorScheme=0",), "14")]
)
def test_it_fits_and_follows_the_scheme(tmp_path, flags, ground):
    """No wider than a telephone, nor than a wide screen, with the longest names; light and dark."""
    page = pages.page(counted(*everything("x" * 300)), WEEK)

    found = measured(page, tmp_path, *flags)

    assert [360, 1600] == [width for width, _ in found]
    assert all(colour.startswith(f"rgb({ground},") for _, colour in found)


def test_its_figures_are_those_of_the_object(tmp_path):
    """Of the very same report."""
    with Rig() as rig:
        rig.door()
        rig.zdo("kiss", "fable", "one")
        rig.zdo("kiss", "nobody", "two")
        told = rig.zdo("report", "--json", "--html", f"{rig.root}/page.html").json
        page = Path(told["html"]).read_text(encoding="ascii")

    shown, _ = browsed(page, tmp_path)

    key = re.search(r'<ul class="key">(.*?)</ul>', shown)[1]
    counts = re.findall(r'<b>([a-z]+)</b>.*?<span class="n">([0-9,]+)<', key)
    assert {fate: str(told["fates"][fate]) for fate in FATES} == dict(counts)
    rows = re.findall(r'<th scope="row">([a-z-]+)</th>.*?<td class="n">([0-9,]+)</td>', shown)
    for each in told["classes"]:
        assert (each["class"], str(each["deliveries"])) in rows
