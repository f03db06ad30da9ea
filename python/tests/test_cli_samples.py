"""Words that say which samples are meant."""

import pytest
from headrace.cli.failures import UsageError
from headrace.cli.samples import sample_numbers


def test_numbers_and_ranges_count_as_in_python():
    assert sample_numbers(["3", "-1"], 10) == [3, 9]
    assert list(sample_numbers(["2:5"], 10)) == [2, 3, 4]
    assert list(sample_numbers(["-2:"], 10)) == [8, 9]
    assert list(sample_numbers([":99"], 3)) == [0, 1, 2]
    assert sample_numbers(["0", "1:3"], 10) == [0, 1, 2]


def test_one_range_is_not_written_out():
    assert sample_numbers(["0:1000000000000"], 10**12) == range(10**12)


@pytest.mark.parametrize("word", ["x", "1:2:3", "", "1.5", "--", "10", "-11"])
def test_what_is_no_sample_is_refused(word):
    with pytest.raises(UsageError):
        sample_numbers([word], 10)
