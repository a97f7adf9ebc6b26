"""The canonical form of an event and its hash: every verifier in the world must get the same bytes."""

import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.canonical import GENESIS, canonical, link_hash

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_keys_are_sorted_and_nothing_is_padded_or_escaped_that_need_not_be():
    event = {"b": [1, 2.5, None, True], "a": {"y": "é€😀/", "x": '"\\\n\x7f'}}
    assert canonical(event) == '{"a":{"x":"\\"\\\\\\n\x7f","y":"é€😀/"},"b":[1,2.5,null,true]}'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_json_has_no_number_for_is_refused(number):
    with pytest.raises(ValueError, match="JSON"):
        canonical({"a": number})


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=6))
def test_reading_the_canonical_form_and_writing_it_again_changes_nothing(event):
    text = canonical(event)
    assert canonical(json.loads(text)) == text
    assert "\n" not in text


@given(st.dictionaries(st.text(max_size=8), VALUES, min_size=2, max_size=6))
def test_the_order_of_the_keys_makes_no_difference(event):
    assert canonical(dict(reversed(event.items()))) == canonical(event)


def test_the_hash_is_over_domain_chain_seq_previous_hash_and_the_hash_of_the_text():
    body = canonical({"id": "x", "text": "é"})
    previous = "ab" * 32
    link = b"tollbar-audit-1" + b"\x0f" + b"\x00\x00\x00\x00\x00\x01\x00\x02" + b"\xab" * 32
    expected = hashlib.sha256(link + hashlib.sha256('{"id":"x","text":"é"}'.encode()).digest()).hexdigest()
    assert link_hash(15, 65538, previous, body) == expected


def test_the_first_event_of_a_chain_follows_32_zero_bytes():
    assert GENESIS == "00" * 32


def test_the_worked_example_of_the_documentation_is_right(project_root):
    text = (project_root / "docs" / "audit.md").read_text(encoding="utf-8")
    example = text.split("## A worked example")[1]
    body, line = re.findall(r"```json\n(\{.*?\})\n```", example)
    stated = re.findall(r"\b[0-9a-f]{64}\b", example)
    content = hashlib.sha256(body.encode()).hexdigest()
    assert canonical(json.loads(body)) == body
    assert stated[0] == content
    exported = json.loads(line)
    assert exported["hash"] == link_hash(exported["chain"], exported["seq"], GENESIS, body)
    assert line.startswith(body[:-1])
