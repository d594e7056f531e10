"""The configuration file's faults: each is refused with its line, its key and a sentence."""

from __future__ import annotations

import time

import pytest

from registry.errors import ConfigInvalid
from registry.schema import check_file, line_of

FABLE = "388e03f6-0000-4000-8000-000000000001"
ONE = "needs exactly one of session, name, ticket, tsid"
TEXT = "input should be a valid string"
PRINTABLE = "holds control characters, or blanks around it"
UNKNOWN = "is not a known key"
CARRIER = "targets.t.carrier_session"


def fault(text: str) -> tuple[int | None, str | None, str]:
    """Line, key and sentence of the refusal of *text*."""
    with pytest.raises(ConfigInvalid) as caught:
        check_file("/zdo.toml", text)
    assert caught.value.path == "/zdo.toml"
    return caught.value.line, caught.value.key, caught.value.why


def test_an_empty_text_gives_nothing() -> None:
    """Every part may be missing."""
    assert check_file("/zdo.toml", "") == {"targets": []}
    assert check_file("/zdo.toml", "[station]\n[carrier]\n[targets]\n") == {"targets": []}


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a = \n", 1, "is not TOML: Invalid value"),
        ("[station]\n\nname = 'x\n", 3, 'is not TOML: Expected "\'"'),
        ("[station]\nname = '''x\n\n#\n", 2, "is not TOML: Expected \"'''\""),
        ("a = 1\na = 2\n", 2, "is not TOML: Cannot overwrite a value"),
        ("a = " + "[" * 50_000, 1, "is nested too deeply"),
        ("b = 1\na = " + "1" * 5_000, 2, "is not TOML: Exceeds the limit"),
    ],
)
def test_what_is_not_toml_is_refused_with_its_line(text: str, line: int, why: str) -> None:
    """The parser's own place becomes ours."""
    found = fault(text)

    assert (line, None) == found[:2]
    assert found[2].startswith(why)


@pytest.mark.parametrize(
    ("text", "line", "key", "why"),
    [
        ("\n[statoin]\nname='a'", 2, "statoin", UNKNOWN),
        ("name = 'a'", 1, "name", UNKNOWN),
        ("[carrier]\nmax_turns = 1\nmax_turn = 1", 3, "carrier.max_turn", UNKNOWN),
        ("[carrier.deep]\nx = 1", 1, "carrier.deep", UNKNOWN),
        ("carrier.x = 1", 1, "carrier.x", UNKNOWN),
        ("station = 5", 1, "station", "is not a table"),
        ("targets = []", 1, "targets", "is not a table"),
        ("[targets]\nfable = 5", 2, "targets.fable", "is not a table"),
        (f"[targets.a]\nsession='{FABLE}'\nx=1", 3, "targets.a.x", UNKNOWN),
        (
            f"[targets.'a b']\nsession='{FABLE}'\n\n'y z'=1",
            4,
            "targets.'a b'.'y z'",
            UNKNOWN,
        ),
    ],
)
def test_an_unknown_key_is_refused_where_it_stands(
    text: str, line: int, key: str, why: str
) -> None:
    """A misspelt key is not a default, however deep it is."""
    assert (line, key, why) == fault(text)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("max_turns = true", "max_turns"),
        ("max_turns = 0", "max_turns"),
        ("max_turns = 5", "max_turns"),
        ("max_turns = 1.0", "max_turns"),
        ("max_turns = '1'", "max_turns"),
        ("max_budget_usd = 0", "max_budget_usd"),
        ("max_budget_usd = -0.0", "max_budget_usd"),
        ("max_budget_usd = -1", "max_budget_usd"),
        ("max_budget_usd = inf", "max_budget_usd"),
        ("max_budget_usd = -inf", "max_budget_usd"),
        ("max_budget_usd = nan", "max_budget_usd"),
        ("max_budget_usd = true", "max_budget_usd"),
        ("max_budget_usd = '1'", "max_budget_usd"),
        ("max_budget_usd = 1979-05-27", "max_budget_usd"),
        ("timeout_s = 0", "timeout_s"),
        ("timeout_s = 3600.1", "timeout_s"),
        ("timeout_s = nan", "timeout_s"),
        ("timeout_s = false", "timeout_s"),
        ("settle_s = -0.1", "settle_s"),
        ("settle_s = 61", "settle_s"),
        ("settle_s = inf", "settle_s"),
        ("pass_env = 'RIG'", "pass_env"),
        ("pass_env = [5]", "pass_env"),
        ("pass_env = ['A', '']", "pass_env"),
        ("pass_env = ['1A']", "pass_env"),
        ("pass_env = ['A=B']", "pass_env"),
        ("pass_env = ['A\\n']".replace("'", '"'), "pass_env"),
        ("pass_env = ['É']", "pass_env"),
        ("pass_env = ['CLAUDECODE']", "pass_env"),
        ("pass_env = ['ANTHROPIC_API_KEY']", "pass_env"),
        ("pass_env = ['ZDO_CARRIER_SESSION']", "pass_env"),
    ],
)
def test_a_limit_that_is_none_is_refused(line: str, key: str) -> None:
    """Limits can be lowered, never removed; nothing of another type passes for a number."""
    found = fault(f"# the limits\n[carrier]\n\n{line}\n")

    assert (4, f"carrier.{key}") == found[:2]


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("name = ''", "name"),
        ("name = 5", "name"),
        ("name = ' a'", "name"),
        ("carrier_session = 'fable'", "carrier_session"),
        ("carrier_session = 5", "carrier_session"),
        ("claude_bin = ''", "claude_bin"),
        ('claude_bin = "a\\u0000b"', "claude_bin"),
        ("claude_config_dir = ''", "claude_config_dir"),
        ("claude_config_dir = false", "claude_config_dir"),
    ],
)
def test_a_station_without_sense_is_refused(line: str, key: str) -> None:
    """A value that cannot be what its key says is refused under that key."""
    found = fault(f"[station]\n{line}\n")

    assert (2, f"station.{key}") == found[:2]


@pytest.mark.parametrize(
    ("body", "line", "key", "why"),
    [
        ("", 2, "targets.t", ONE),
        (
            "carrier_session = ''",
            2,
            "targets.t",
            ONE,
        ),
        (
            f"session='{FABLE}'\nname='x'",
            2,
            "targets.t",
            ONE,
        ),
        (
            "ticket='TK-1'\ntsid='x'",
            2,
            "targets.t",
            ONE,
        ),
        ("session='x'", 3, "targets.t.session", "is not a session UUID"),
        ("session=''", 3, "targets.t.session", "is not a session UUID"),
        ("session=5", 3, "targets.t.session", TEXT),
        ("name=''", 3, "targets.t.name", "string should have at least 1 character"),
        ('name="a\\nb"', 3, "targets.t.name", PRINTABLE),
        ("ticket='TK-'", 3, "targets.t.ticket", "is not TK-<number>"),
        ("ticket='TK-1-fix'", 3, "targets.t.ticket", "is not TK-<number>"),
        ("ticket='TK-\N{ARABIC-INDIC DIGIT ONE}'", 3, "targets.t.ticket", "is not TK-<number>"),
        ("tsid=' '", 3, "targets.t.tsid", PRINTABLE),
        (
            "name='x'\ncarrier_session=5",
            4,
            CARRIER,
            TEXT,
        ),
        ("name='x'\ncarrier_session='t'", 4, CARRIER, "names itself"),
        (
            "name='x'\ncarrier_session='u'",
            4,
            CARRIER,
            "'u' is no UUID and no target",
        ),
        (
            "name='x'\ncarrier_session='../p'",
            4,
            CARRIER,
            "'../p' is no UUID and no target",
        ),
    ],
)
def test_a_target_without_sense_is_refused(body: str, line: int, key: str, why: str) -> None:
    """One selector, of its own form, and a postbox that exists."""
    assert (line, key, why) == fault(f"# who\n[targets.t]\n{body}\n")


@pytest.mark.parametrize(
    ("target_id", "why"),
    [
        ('""', "a target id has 1 to 128 characters"),
        ('"' + "x" * 129 + '"', "a target id has 1 to 128 characters"),
        ("-x", "a target id that begins with a hyphen would be read as an option"),
        ('"a\\nb"', PRINTABLE),
        ('"a\\u0000b"', PRINTABLE),
        ('"\\u001b[2J"', PRINTABLE),
        ('"a\\u202eb"', PRINTABLE),
        ('" a"', PRINTABLE),
    ],
)
def test_a_hostile_target_id_is_refused(target_id: str, why: str) -> None:
    """An id is shown, compared and passed in an environment."""
    found = fault(f"[targets.ok]\nname = 'a'\n[targets.{target_id}]\nname = 'x'\n")

    assert (3, why) == (found[0], found[2])
    assert str(found[1]).startswith("targets.")


@pytest.mark.parametrize("target_id", ["x" * 128, "a/../b", "$(id)", "名前", "a b", "name:x"])
def test_an_odd_target_id_that_is_only_compared_is_taken(target_id: str) -> None:
    """No id becomes a path or a command, so it may look like one."""
    found = check_file("/zdo.toml", f"[targets.'{target_id}']\nname = 'x'\n")

    assert [[target_id, "name", "x", None]] == found["targets"]


def test_a_postbox_may_be_another_targets_id_or_a_session() -> None:
    """In canonical form where it is a session, none at all where it is empty."""
    text = (
        f"[targets.a]\nname='a'\ncarrier_session='b'\n"
        f"[targets.b]\nname='b'\ncarrier_session='{{{FABLE.upper()}}}'\n"
        f"[targets.c]\nname='c'\ncarrier_session=''\n"
    )

    targets = check_file("/zdo.toml", text)["targets"]

    assert [(name, own) for name, _, _, own in targets] == [("a", "b"), ("b", FABLE), ("c", "")]


def test_the_first_of_several_faults_is_shown() -> None:
    """First in the file, whatever the order of the checks."""
    text = "[targets.t]\nx = 1\n\n[carrier]\nmax_turns = 9\n\n[station]\nname = 5\n"

    assert fault(text)[:2] == (2, "targets.t.x")


LINES = f'''# a comment
title = """
[carrier]
max_turns = 9
"""  # ends here
[carrier]  # header

list = [
  1,  # [targets.x]
  2,
]
"max\\u005fturns" = 1
[targets . "a.b"]
session = "{FABLE}"
inline = {{ one = 1, two = {{ three = 3 }} }}
[[many]]
first = 1
[[many]]
second = 2
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("carrier",), 6),
        (("carrier", "list"), 8),
        (("carrier", "max_turns"), 12),
        (("targets",), 13),
        (("targets", "a.b"), 13),
        (("targets", "a.b", "session"), 14),
        (("targets", "a.b", "inline", "two", "three"), 15),
        (("many",), 16),
        (("many", "first"), None),
        (("title", "x"), None),
        (("none",), None),
        ((), None),
    ],
)
def test_a_key_is_found_where_its_statement_begins(path: tuple[str, ...], line: int | None) -> None:
    """Strings and lists of several lines, quoted keys and inline tables included."""
    assert line == line_of(LINES, path)
    assert line == line_of(LINES.replace("\n", "\r\n"), path)


def test_a_line_separator_inside_a_text_is_no_new_line() -> None:
    """Lines are TOML's, not Unicode's."""
    assert line_of("a = '\u2028\u0085'\nb = 1", ("b",)) == 2


def test_a_key_of_a_long_file_is_found_in_time() -> None:
    """A thousand targets and a thousand faults do not make a refusal slow."""
    text = "".join(f"[targets.t{number}]\nsession = 'x'\n" for number in range(1000))

    started = time.monotonic()
    found = fault(text)

    assert found[:2] == (2, "targets.t0.session")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("line", "key", "why"),
    [
        ("root = 'project'", "root", "is not absolute"),
        ("root = '~nobody/x'", "root", "is not absolute"),
        ("root = ''", "root", "is not absolute"),
        ("root = 5", "root", ""),
        ("correlation = '('", "correlation", "is not a regular expression"),
        ("correlation = '[0-9]+'", "correlation", "needs exactly one group"),
        ("correlation = '([0-9])([0-9])'", "correlation", "needs exactly one group"),
        ("ledger = 'x'", "ledger", "is not a known key"),
    ],
)
def test_a_ledger_without_sense_is_refused(line: str, key: str, why: str) -> None:
    """Another folder in every working folder, or a pattern that finds no process."""
    found = fault(f"[tickets]\n{line}\n")

    assert (2, f"tickets.{key}") == found[:2]
    assert why in found[2]


def test_a_pane_is_configured_by_its_id_alone() -> None:
    """With the prefix of an address it would never be found."""
    line, key, why = fault("[targets.desk]\ntsid = 'tsid:w0t1p0:x'\n")

    assert (2, "targets.desk.tsid") == (line, key)
    assert "without tsid:" in why
