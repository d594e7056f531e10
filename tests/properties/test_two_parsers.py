"""The plain parser and Typer are one command line: the quick one is right or silent."""

from __future__ import annotations

import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatch.cli import app
from dispatch.cli.options import FLAG, KISS, SECONDS, KissArgs
from dispatch.cli.plain import parse_kiss
from registry.record import fields

COMMAND = typer.main.get_command(app.app).commands["kiss"]

WORDS = st.sampled_from(
    ["t", "fable", "-", "", " ", "x y", "é", "a=b", "kiss", "1", "-x", "--", "---", "--json=1"]
)
SECONDS_SPELT = st.sampled_from(
    ["0", "1", "1.5", ".5", "1.", ".", "1e3", "-1", "+1", "1_0", "²", "1.2.3", " 1", "", "00.10"]
) | st.floats(0, 10**6).map(str)


def spelt(option):
    """*option* as people type it: apart, with an equals sign, without a value, wrongly."""
    if option.kind == FLAG:
        return st.sampled_from([[option.flag], [option.flag], [f"{option.flag}=1"]])
    values = SECONDS_SPELT if option.kind == SECONDS else WORDS
    return st.one_of(
        values.map(lambda value: [option.flag, value]),
        values.map(lambda value: [f"{option.flag}={value}"]),
        st.just([option.flag]),
    )


PARTS = st.one_of(
    st.just(["t"]),
    WORDS.map(lambda word: [word]),
    st.sampled_from(KISS).flatmap(spelt),
    st.sampled_from([["--help"], ["-h"], ["--jso"], ["--no-json"], ["--version"]]),
)
LINES = st.lists(PARTS, max_size=7).map(
    lambda parts: ["kiss", *(w for part in parts for w in part)]
)


def by_typer(argv):
    """What Typer makes of the same words, or None where it refuses or only helps."""
    try:
        context = COMMAND.make_context("kiss", argv[1:])
    except (typer.TyperException, typer.Exit):
        return None
    return KissArgs(**context.params)


@settings(max_examples=600)
@given(LINES)
def test_the_plain_parser_says_what_typer_says_or_nothing(argv):
    """Every spelling that it takes on itself is filled exactly as Typer would."""
    plain = parse_kiss(argv)

    if plain is not None:
        assert by_typer(argv) == plain


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(KISS).flatmap(
            lambda option: {
                FLAG: st.just([option.flag]),
                SECONDS: st.integers(0, 99).map(lambda n: [option.flag, str(n)]),
            }.get(option.kind, st.just([option.flag, "value"]))
        ),
        max_size=6,
    ),
    st.integers(0, 6),
)
def test_what_is_plain_is_not_left_to_typer(options, place):
    """Every option of the table in its plain spelling takes the quick way."""
    parts = [*options[:place], ["fable"], ["a line"], *options[place:]]

    assert parse_kiss(["kiss", *(word for part in parts for word in part)]) is not None


def test_without_an_option_both_fill_the_same_defaults():
    """The defaults stand in KissArgs and in Typer's signature; here they meet."""
    assert by_typer(["kiss", "t"]) == parse_kiss(["kiss", "t"]) == KissArgs("t")


def test_the_table_has_a_row_for_every_field_that_an_option_fills():
    """A field without its row would have no help and no plain spelling."""
    assert sorted(option.field for option in KISS) == sorted(
        fields(KissArgs("t")).keys() - {"address", "line"}
    )
