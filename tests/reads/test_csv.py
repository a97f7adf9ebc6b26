"""CSV lines of reports."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from billing.reports import FORMULA_STARTS, csv_line


def cells_of(line):
    return next(csv.reader(io.StringIO(line)))


@pytest.mark.parametrize(
    "text", ['=HYPERLINK("http://evil.example","x")', "+1+1", "-2+3", "@SUM(A1)", "\tx", "\rx", "\nx", "＝1", "＠x"]
)
def test_a_text_that_a_spreadsheet_would_run_begins_with_an_apostrophe(text):
    assert cells_of(csv_line([text])) == [f"'{text}"]


@pytest.mark.parametrize("text", ["a=b", "ünïcode 東", 'he said "hi", ok', "0.000105", "2025-01-31", "", "'x"])
def test_any_other_text_is_told_as_it_is(text):
    assert cells_of(csv_line([text, 1])) == [text, "1"]


def test_numbers_stay_numbers_also_below_zero():
    assert csv_line([-1, 0, 12345678901234567890, -0.5]) == "-1,0,12345678901234567890,-0.5\r\n"


def test_quotes_are_doubled():
    assert csv_line(['he said "hi", ok']) == '"he said ""hi"", ok"\r\n'


@given(st.lists(st.one_of(st.text(), st.integers(), st.none()), min_size=1, max_size=6))
@example(["a\r\nb", '"', "=1"])
def test_every_cell_comes_back_and_none_is_a_formula(cells):
    line = csv_line(cells)
    assert line.endswith("\r\n")
    read = cells_of(line)
    assert len(read) == len(cells)
    for cell, given_cell in zip(read, cells, strict=True):
        if isinstance(given_cell, int):
            assert int(cell) == given_cell
        else:
            assert not cell.startswith(FORMULA_STARTS)
            assert cell.removeprefix("'") == (given_cell or "").removeprefix("'")
