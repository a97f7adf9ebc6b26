"""Names may be anything people write, but nothing that hides or reorders text."""

import pytest

from tenants.names import fault_of_name


@pytest.mark.parametrize(
    "name", ["app", '=HYPERLINK("http://evil.test","x")', "ünïcode 東", "<script>alert(1)</script>", "+1", "x" * 100]
)
def test_names_in_any_script_and_with_any_sign_are_kept(name):
    assert fault_of_name(name) is None


@pytest.mark.parametrize(
    "name",
    ["", "   ", "x" * 101, "a\tb", "a\nb", "a\x00b", "a\u202eb", "a\u200bb", "a\u2028b", "\x1b[31mred", "a\ud800b"],
)
def test_names_that_hide_or_reorder_text_are_refused(name):
    assert fault_of_name(name)
