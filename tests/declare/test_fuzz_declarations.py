"""No text, however wrong, gets anything but a ValueError out of the readers of declarations."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyop.declare.signature import Signature
from pyop.declare.spec import Spec

GOOD = [
    "float64[n, m+1], T[*batch, 2*(n-1)//3] -> T[*batch], i8[k!], str[_!]",
    "f8[n *b 3],datetime64[25ms][n]->()",
    "() -> object[...], _[_]",
    "(n?,k),(k,m?)->(n?,m?)",
    "(n|1),(3)->(n),(k!)",
    "complex64[(((n))), -m+7] -> bool",
]
PIECES = [
    *"[](),*!?|+-_ \t\n\0<>=.0123456789nmTé\ud800",
    "...", "->", "//", "**", "*b", "_!", "n!", "n|1", "float64", "f8[", "T1[", "M8[s]", "U99999999999", "9" * 30,
    "(" * 60, "-" * 300, "[" * 300, "//0", "*(n+m)", "a5", "V-1", "\N{ARABIC-INDIC DIGIT ONE}",
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A good text with a few pieces put in, cut out or repeated."""
    text = draw(st.sampled_from(GOOD))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(len(text), at + 8)))
        piece = draw(st.one_of(st.sampled_from(PIECES), st.just(""), st.just(text[at:end] * 2)))
        text = text[:at] + piece + text[end:]
    return text


texts = st.one_of(mutated(), st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.text(max_size=40))


def feed(text: str) -> None:
    for read in (Spec.parse, Signature.parse):
        try:
            made = read(text)
        except ValueError as error:
            message, *shown = str(error).split("\n")
            assert "expected" in message or "not a dtype" in message or "bind" in message or "size" in message, message
            assert len(shown) == 2
            assert shown[1].strip() == "^"
            assert len(shown[1]) <= len(shown[0]) + 1
        else:
            # What is read is written as text that reads the same.
            assert read(str(made)) == made
    for build in (lambda: Signature.make(outputs={"a": text}), lambda: Signature.make(inputs=[text], outputs=text)):
        with suppress(ValueError):
            build().encode()
    for place in ((text,), (text, "n")):
        with suppress(ValueError):
            Spec("f8", place)


fast = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@fast
@given(texts)
def test_fuzz(text: str) -> None:
    feed(text)


@pytest.mark.campaign
@settings(fast, max_examples=20_000)
@given(texts)
def test_fuzz_campaign(text: str) -> None:
    feed(text)
