"""Every feature between every client and every provider is carried over, refused by name, or left out for a reason."""

from __future__ import annotations

import pytest

from tests.matrix.left_out import LEFT_OUT
from tests.matrix.page import HEADINGS, PAGE, ROWS, page
from tests.matrix.pairs import LEFT_OUT as MARK
from tests.matrix.pairs import MODELS, NOTHING, Pair, dialects, kinds


@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("name", HEADINGS)
def test_nothing_gets_lost_without_a_word(name: str, kind: str) -> None:
    marks = {feature.name: Pair(name, kind).mark(feature) for feature in ROWS}
    assert set(marks.values()) != {NOTHING}


def test_the_page_says_what_the_pairs_do() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make features`"


def test_every_dialect_and_every_kind_is_in_the_table() -> None:
    assert set(HEADINGS) == set(dialects())
    assert set(MODELS) == set(kinds())


def test_the_list_of_what_is_left_out_is_no_longer_than_it_must_be() -> None:
    features = {feature.name: feature for feature in ROWS}
    pairs = [Pair(name, kind) for name in HEADINGS for kind in kinds()]
    used = {name for name in LEFT_OUT if any(pair.mark(features[name]) == MARK for pair in pairs)}
    assert used == set(LEFT_OUT)
