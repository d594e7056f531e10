"""What reaches a carrier, whatever surrounds its caller (law 4, K12, K13)."""

from __future__ import annotations

import inspect

from hypothesis import given
from hypothesis import strategies as st

from carrier.argv import build_argv, build_env, settings, wrapper_command

FROM_CALLER = {
    "HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"
}  # fmt: skip
SET = {
    "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY",
    "ZDO_CARRIER_DOOR_TARGET", "ZDO_CARRIER_SESSION", "ZDO_CARRIER_ATTEMPT",
    "ZDO_CARRIER_WRAPPER", "ZDO_SENDER_SESSION_ID",
}  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(sorted(FROM_CALLER | SET | {"AI_AGENT", "TERM_SESSION_ID", "LC_ALL", "TERM"})),
    st.builds(
        str.__add__,
        st.sampled_from(["CLAUDE", "CLAUDE_CODE_", "ANTHROPIC_", "ZDO_", "LC_", ""]),
        st.text("ABCDEFGHIJ_", min_size=1, max_size=8),
    ),
)
# A mark that no value of ours contains.
VALUES = st.text(max_size=20).map("canary:{}".format)
WORDS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)


def build(caller, pass_env):
    """The environment of one and the same carrier under *caller*."""
    return build_env(
        caller, pass_env=pass_env, claude_dir="/c", target_id="fable", postbox="p",
        attempt_dir="/a", wrapper="w", sender="anonymous",
    )  # fmt: skip


@given(caller=st.dictionaries(NAMES, VALUES), pass_env=st.lists(NAMES, max_size=4))
def test_nothing_reserved_gets_through_whatever_the_caller_has(caller, pass_env):
    """Names are the short list, LC_*, the listed ones and ours; ours have our values."""
    env = build(caller, pass_env)

    listed = {n for n in pass_env if not n.startswith(("CLAUDE", "ANTHROPIC", "ZDO_"))}
    allowed = FROM_CALLER | SET | listed
    assert {n for n in env if n not in allowed and not n.startswith("LC_")} == set()
    assert {n for n in SET if env[n].startswith("canary:")} == set()


@given(one=st.dictionaries(NAMES, VALUES), two=st.dictionaries(NAMES, VALUES))
def test_two_callers_give_the_same_carrier_but_for_the_short_list(one, two):
    """What is not let through has no influence on what is set."""
    ours = [
        {n: v for n, v in build(caller, ()).items() if n in SET and n not in FROM_CALLER}
        for caller in (one, two)
    ]

    assert ours[0] == ours[1] == build({}, ())


def test_the_line_is_not_even_a_parameter():
    """So argv, environment and settings are equal for every line."""
    functions = (build_argv, build_env, settings, wrapper_command)
    parameters = {name for f in functions for name in inspect.signature(f).parameters}

    assert set() == parameters & {"line", "text", "envelope", "content"}


@given(target=WORDS, sender=WORDS, attempt_dir=WORDS)
def test_what_zdo_sets_arrives_as_it_is(target, sender, attempt_dir):
    """Text that the platform can pass is passed unchanged."""
    env = build_env(
        {}, pass_env=(), claude_dir="/c", target_id=target, postbox="p",
        attempt_dir=attempt_dir, wrapper="w", sender=sender,
    )  # fmt: skip

    assert (target, sender, attempt_dir) == (
        env["ZDO_CARRIER_DOOR_TARGET"],
        env["ZDO_SENDER_SESSION_ID"],
        env["ZDO_CARRIER_ATTEMPT"],
    )


@given(budget=st.floats(min_value=1e-300, max_value=1e300), turns=st.integers(1, 4))
def test_the_limits_are_always_on_the_command_line(budget, turns):
    """And say exactly the configured number."""
    argv = build_argv("claude", "p", "/s", "d", turns, budget)

    assert budget == float(argv[argv.index("--max-budget-usd") + 1])
    assert "e" not in argv[argv.index("--max-budget-usd") + 1]
    assert str(turns) == argv[argv.index("--max-turns") + 1]
