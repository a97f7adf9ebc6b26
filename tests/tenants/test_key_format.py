"""Generated keys have the published form, and a typing mistake is seen without asking anything."""

import re
import string

from hypothesis import given
from hypothesis import strategies as st

from tenants.keys import ALPHABET, digest, fault_of_imported, generate, looks_like_generated, new_id, parse

PUBLISHED = re.compile(r"tb_(live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}")
positions = st.integers(min_value=0, max_value=len("tb_live_") + 12 + 1 + 49 - 1)


def test_a_generated_key_matches_the_published_form_and_says_its_id():
    key_id = new_id()
    key = generate(key_id, "live")
    assert PUBLISHED.fullmatch(key)
    assert parse(key) == ("live", key_id)


def test_ten_thousand_keys_are_all_different():
    assert len({generate(new_id(), "test") for _ in range(10_000)}) == 10_000


@given(positions, st.sampled_from(string.printable))
def test_a_changed_character_is_noticed(position, character):
    key = generate("0123456789ab", "live")
    changed = key[:position] + character + key[position + 1 :]
    assert parse(changed) == (("live", "0123456789ab") if changed == key else None)


@given(positions)
def test_a_cut_key_is_noticed(length):
    key = generate("0123456789ab", "live")
    assert parse(key[:length]) is None
    assert parse(key + "A") is None


@given(st.text())
def test_no_text_breaks_the_parser(text):
    assert parse(text) is None
    assert parse(f"tb_live_{text}") is None


def test_the_check_is_the_crc32_of_all_before_it_in_base62():
    # zlib.crc32(b"tb_live_000000000000_" + b"0" * 43) == 620096919
    number, digits = 620_096_919, ""
    while number:
        number, digit = divmod(number, 62)
        digits = ALPHABET[digit] + digits
    body = "tb_live_000000000000_" + "0" * 43
    assert parse(body + digits.rjust(6, "0")) == ("live", "0" * 12)


def test_a_digest_depends_on_the_pepper_and_on_every_character():
    assert digest(b"pepper", "secret") != digest(b"other", "secret")
    assert digest(b"pepper", "secret") != digest(b"pepper", "secreT")
    assert len(digest(b"pepper", "secret")) == 32


def test_an_imported_secret_may_be_any_long_printable_text():
    assert fault_of_imported("x" * 24) is None
    assert fault_of_imported("sk-proj.with-one-dot!{}|~[]") is None
    assert fault_of_imported(generate(new_id(), "live")) is None


def test_what_could_never_be_sent_as_a_key_is_not_imported():
    assert "24" in str(fault_of_imported("x" * 23))
    assert "512" in str(fault_of_imported("x" * 513))
    assert "printable" in str(fault_of_imported("x" * 24 + " "))
    assert "printable" in str(fault_of_imported("ü" * 24))
    assert "JWT" in str(fault_of_imported("aaaaaaaaaa.bbbbbbbbbb.cccccccccc"))
    broken = generate(new_id(), "live")[:-1] + "!"
    assert looks_like_generated(broken)
    assert "check" in str(fault_of_imported(broken))
