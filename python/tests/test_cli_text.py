"""Numbers, names and tables as the command line prints them."""

from headrace.cli import text


def test_sizes_keep_two_figures_until_they_are_three():
    assert text.bytes_text(0) == "0 B"
    assert text.bytes_text(1023) == "1023 B"
    assert text.bytes_text(1536) == "1.5 KiB"
    assert text.bytes_text(200 * 2**20) == "200 MiB"
    assert text.bytes_text(5000 * 2**60) == "5000 EiB"


def test_counts_get_separators_and_plurals():
    assert text.counted(1, "shard") == "1 shard"
    assert text.counted(1281167, "sample") == "1,281,167 samples"
    assert text.counted(0, "class") == "0 classes"


def test_times_choose_their_unit():
    shown = [text.seconds_text(s) for s in (0.00005, 0.0123, 5, 75, 7290)]
    assert shown == ["50 us", "12.3 ms", "5.0 s", "1 min 15 s", "2 h 1 min"]


def test_control_characters_become_escapes():
    assert text.printable("plain \u00e9\u4e2d") == "plain \u00e9\u4e2d"
    assert text.printable("a\x1b[31mb\n\t\x9b") == "a\\x1b[31mb\\n\\t\\x9b"
    assert text.printable("\u202e\udc80\U000e0001") == "\\u202e\\udc80\\U000e0001"


def test_long_text_tells_what_is_left_out():
    assert text.shortened("abc", 3) == "abc"
    assert text.shortened("abcdef", 3) == "abc... (3 more characters)"


def test_tables_align_and_do_not_trail():
    rows = [("a", "1", "x"), ("long", "100", "")]
    assert text.table(rows, right=frozenset({1})) == "  a       1  x\n  long  100"
    assert text.table([]) == ""


def test_buckets_lie_between_powers_of_two_and_keep_gaps():
    assert text.size_buckets([]) == []
    assert text.size_buckets([0]) == [(0, 1, 1)]
    assert text.size_buckets([1, 2, 3, 9]) == [(1, 2, 1), (2, 4, 2), (4, 8, 0), (8, 16, 1)]
    assert sum(count for _, _, count in text.size_buckets(range(1000))) == 1000


def test_histogram_draws_the_fullest_bucket_widest():
    lines = text.histogram([2**20] * 9 + [2**22] * 3, width=30).splitlines()
    assert [line.count("#") for line in lines] == [30, 0, 10]
    assert lines[0].split() == ["1.0", "MiB", "to", "2.0", "MiB", "9", "#" * 30]
