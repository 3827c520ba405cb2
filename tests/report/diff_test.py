#!/usr/bin/env python3
"""tacho diff: its numbers on made captures, its default names, and what it refuses."""
import made_capture as made
import programs

TWO = ("before.data", "after.data")


class Diff(programs.Scratch):
    def setUp(self):
        super().setUp()
        for name, weights in (("before.data", {"a": 1, "b": 3}), ("after.data", {"a": 3, "b": 2, "c": 5})):
            capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL))
            for number, (thread, count) in enumerate(weights.items()):
                capture.named(thread, made.PID + number)
                for _ in range(count):
                    capture.sample(tid=made.PID + number)
            (self.folder / name).write_bytes(capture.file())

    def rows(self, *words, status=None):
        done = self.tacho("diff", *words, "-s", "comm", "-t", ",", status=status)
        return [[cell.strip() for cell in line.split(",")] for line in done.stdout.decode().splitlines() if line[0] != "#"]

    def test_shares_and_their_difference_largest_first(self):
        self.assertEqual(self.rows(*TWO), [["75.00", "-55.00%", "b"], ["", "+50.00%", "c"], ["25.00", "+5.00%", "a"]])

    def test_ratios_and_weighted_differences(self):
        self.assertEqual(self.rows(*TWO, "-c", "ratio"), [["25.00", "3.000000", "a"], ["75.00", "0.666667", "b"], ["", "N/A", "c"]])
        self.assertEqual(self.rows(*TWO, "-c", "wdiff:1,2", "-b"), [["25.00", "5000", "a"], ["75.00", "1000", "b"]])

    def test_names_are_perfs_if_none_is_given(self):
        for name, usual in zip(TWO, ("perf.data.old", "perf.data")):
            (self.folder / name).rename(self.folder / usual)
        self.assertEqual(self.rows(), self.rows("perf.data.old", "perf.data"))
        self.assertEqual(self.rows("perf.data"), self.rows())

    def test_one_capture_a_side_is_no_verdict(self):
        said = self.tacho("diff", *TWO, status=None).stderr.decode()
        self.assertIn("not what is more than noise", said)
        self.assertNotIn("noise", self.tacho("diff", *TWO, "--as-perf", status=None).stderr.decode())

    def test_events_that_one_capture_lacks(self):
        capture = made.Capture(made.Event("task-clock", made.SOFTWARE, 1, made.USUAL)).started()
        capture.sample(0)
        (self.folder / "other.data").write_bytes(capture.file())
        said = self.tacho("diff", "before.data", "other.data", status=None).stderr.decode()
        self.assertIn("other.data: no event cpu-clock, which the baseline has", said)
        self.assertIn("other.data: event task-clock is left out, as the baseline does not have it", said)
        self.assertNotIn("event", self.tacho("diff", *TWO, status=None).stderr.decode())

    def test_what_makes_no_sense_is_refused(self):
        for words, said in (((*TWO, "-o", "2"), "there are 2 captures"),
                            ((*TWO, "-c", "cycles"), "--total-cycles"),
                            ((*TWO, "-c", "wdiff:1"), "wdiff:W1,W2"),
                            ((*TWO, "--json", "-p"), "leave out"),
                            ((*TWO, "after.data", "--csv"), "of two captures"),
                            (("-", "after.data"), "a pipe"),
                            ((*TWO, "--stream"), "streams of branches")):
            with self.subTest(words=words):
                self.assertIn(said, self.tacho("diff", *words, status=1).stderr.decode())


if __name__ == "__main__":
    programs.main()
