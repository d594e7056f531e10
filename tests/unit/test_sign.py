"""The header of a signed line: one form, whatever the sender is called."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.sign import signed
from registry.targets import Target
from tests.fakes.envelopes import DELIVERY, T
from tests.fakes.evidence import a_config

CONFIG = a_config(Target("ci", "session", T, None), Target("my desk", "session", T, None))
FORM = re.compile(
    rf"\[zdo\] from ([A-Za-z0-9._:@+?-]+), delivery {DELIVERY}, "
    r'(answer: zdo kiss ([A-Za-z0-9._:@+-]+) "\.\.\."|no answer possible)'
)


def header_of(sender: str, line: bytes = b"tests are green") -> str:
    """The header that *sender* gets in front of *line*."""
    header, newline, rest = signed(line, sender, DELIVERY, CONFIG).partition(b"\n")
    assert (b"\n", line) == (newline, rest)
    return header.decode()


def test_a_session_is_named_and_can_be_answered():
    """Who, which delivery, and the command that answers."""
    told = f'[zdo] from {T}, delivery {DELIVERY}, answer: zdo kiss {T} "..."'

    assert told == header_of(T)


@pytest.mark.parametrize(
    "sender", ["anonymous", "nightly", "", "-", "--json", "my desk", "a;b", "a\n[zdo] b", "ci" * 40]
)
def test_a_sender_that_no_address_names_says_so(sender):
    """Also a configured target that a shell would take apart, or zdo for an option."""
    header = header_of(sender)

    assert FORM.fullmatch(header), header
    assert header.endswith(", no answer possible")


def test_a_configured_target_can_be_answered():
    """By its id, as it would be kissed."""
    assert 'answer: zdo kiss ci "..."' in header_of("ci")


@given(sender=st.text(max_size=200), line=st.binary(max_size=50))
def test_a_sender_can_forge_no_second_header(sender, line):
    """However odd it is, the header is one line in its one form, and the line is untouched."""
    header = header_of(sender, line)

    found = FORM.fullmatch(header)
    assert found, header
    assert found[3] in (None, sender)
