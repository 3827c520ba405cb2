#!/usr/bin/env python3
"""tacho script --columns: one line for each sample with the given columns, as text, CSV and JSON."""
import csv
import io
import json
import struct

import made_payload
import programs
from made_payload import ENUM, TEXT, Field

ERRORS = ((0, "OK"), (2, "ENOENT"))


class Columns(programs.Scratch):
    def write(self, more=()):
        """Two events; one has a field with the name of a sample value, and a list."""
        capture = made_payload.capture(
            open=[Field("lat", unit="ns", role="value"), Field("error", ENUM, 4, enumerators=ERRORS),
                  Field("mode", size=4, format="oct"), Field("path", TEXT, 1, 64)],
            close=[Field("pid", size=4), Field("list", size=4, count=3), Field("at", format="kaddr")])
        for number, (path, error) in enumerate([("/etc/a,b", 0), ("/tmp/\x1b[31m", 2), *more]):
            capture.sample(0, raw=struct.pack("<QII64s", 10 ** min(number, 18), error, 0o644, path.encode()))
        capture.sample(1, raw=struct.pack("<IIIIQ", 77, 1, 2, 3, 0xffff880000000000))
        (self.folder / "perf.data").write_bytes(capture.file())

    def output(self, *words, status=0):
        done = self.tacho("script", *words, status=status)
        return done.stdout.decode(), done.stderr.decode()

    def rows(self, *words):
        return [json.loads(line) for line in self.output("--json", *words)[0].splitlines()]

    def test_requested_values_are_printed_in_columns(self):
        self.write()
        head, *lines = self.output("--columns", "comm,lat,error,mode,path")[0].splitlines()
        self.assertEqual(head.split(), ["comm", "lat", "error", "mode", "path"])
        self.assertEqual([line.split() for line in lines],
                         [["spin", "1", "OK", "0644", "/etc/a,b"], ["spin", "10", "ENOENT", "0644", "/tmp/\\x1b[31m"]])
        # Numbers are right-aligned with their heading, texts left-aligned.
        for line in lines:
            end = head.index("lat") + 3
            self.assertTrue(line[end - 1].isdigit() and line[end] == " ", line)
            self.assertEqual(line[head.index("path") - 1:head.index("path") + 1], " /")

    def test_auto_is_time_thread_and_the_events_own_fields(self):
        self.write()
        of_open = self.rows("--columns", "auto", "--event", "open")
        self.assertEqual([list(row) for row in of_open], 2 * [["time", "comm", "pid", "lat", "error", "mode", "path"]])
        self.assertEqual([(row["lat"], row["error"], row["mode"]) for row in of_open], [(1, "OK", "0644"), (10, "ENOENT", "0644")])
        self.assertEqual(of_open[0]["path"], "/etc/a,b")
        both = self.rows("--columns", "auto")
        self.assertEqual([row["event"] for row in both], ["open", "open", "close"])
        self.assertEqual([row["lat"] for row in both], [1, 10, None])
        # A payload field hides the sample value of the same name, which is then sample.NAME.
        self.assertEqual([row["pid"] for row in both], [None, None, 77])
        self.assertEqual({row["sample.pid"] for row in both}, {4242})
        self.assertEqual((both[2]["list"], both[2]["at"]), ("1,2,3", "0xffff880000000000"))

    def test_all_is_what_every_sample_has_and_the_fields(self):
        self.write()
        of_open = self.rows("--columns", "all", "--event", "open")
        self.assertEqual([list(row) for row in of_open], 2 * [["time", "comm", "pid", "tid", "cpu", "event", "lat", "error", "mode", "path"]])
        (of_close,) = self.rows("--columns", "all", "--event", "close")
        self.assertEqual(list(of_close), ["time", "comm", "sample.pid", "tid", "cpu", "event", "pid", "list", "at"])
        self.assertEqual((of_close["sample.pid"], of_close["pid"]), (4242, 77))

    def test_numbers_of_the_kernels_tracepoints_are_written_as_people_do(self):
        """Fields of tracepoints are shown by name (system calls, errors, states), which is decided by field names."""
        capture = made_payload.capture(**{
            "raw_syscalls:sys_exit": [Field("id", made_payload.SIGNED), Field("ret", made_payload.SIGNED)],
            "sched:sched_switch": [Field("prev_state", made_payload.SIGNED)],
            "block:block_rq_issue": [Field("dev", size=4), Field("pad", size=4)],
            "sock:inet_sock_set_state": [Field("saddr", size=1, count=4), Field("daddr_v6", size=1, count=16),
                                         Field("pad", size=4)]})
        for call, returned in [(257, -2), (0, 4096), (999, -4095)]:
            capture.sample(0, raw=struct.pack("<qq", call, returned))
        for state in (0, 1, 2, 0x100):
            capture.sample(1, raw=struct.pack("<q", state))
        capture.sample(2, raw=struct.pack("<II", 259 << 20 | 1, 0))
        capture.sample(3, raw=bytes([10, 0, 0, 7]) + bytes(15) + bytes([1]) + bytes(4))
        (self.folder / "perf.data").write_bytes(capture.file())
        rows = self.rows("--columns", "id,ret", "--event", "raw_syscalls:sys_exit")
        self.assertEqual([tuple(row.values()) for row in rows], [("openat", "-ENOENT"), ("read", 4096), (999, -4095)])
        self.assertEqual([row["prev_state"] for row in self.rows("--columns", "prev_state")], ["R", "S", "D", "R"])
        self.assertEqual([row["dev"] for row in self.rows("--columns", "dev")], ["259:1"])
        self.assertEqual([(row["saddr"], row["daddr_v6"]) for row in self.rows("--columns", "saddr,daddr_v6")],
                         [("10.0.0.7", "::1")])

    def test_samples_without_a_named_field_are_left_out(self):
        self.write()
        self.assertEqual(len(self.rows("--columns", "comm")), 3)
        self.assertEqual(len(self.rows("--columns", "comm,path")), 2)
        self.assertEqual(len(self.rows("--columns", "comm,path,list")), 3)

    def test_plain_samples_show_their_function(self):
        import made_capture as made
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL)).started()
        capture.sample(ip=made.MAIN + 4)
        (self.folder / "perf.data").write_bytes(capture.file())
        (row,) = self.rows("--columns", "auto,dso")
        self.assertEqual(list(row), ["time", "comm", "pid", "cpu", "sym", "dso"])
        self.assertEqual(row["dso"], made.PROGRAM)

    def test_a_pipe_has_the_same_lines_the_first_of_them_too(self):
        self.write()
        self.tacho("convert", "-i", "perf.data", "-o", "pipe.data", "--to", "pipe")
        for words in (["--columns", "auto"], ["--columns", "auto", "--event", "open", "--json"]):
            whole = self.tacho("script", *words).stdout
            self.assertEqual(self.tacho("script", "-i", "pipe.data", *words).stdout, whole)
            done = self.run_program("sh", "-c", 'cat pipe.data | "$0" "$@"', programs.BIN / "tacho", "script", "--follow",
                                    "-i", "-", *words)
            self.assertEqual((done.stdout, done.stderr), (whole, b""))
        table = self.tacho("table", "--by", "path", "--csv").stdout
        self.assertEqual(self.tacho("table", "--by", "path", "--csv", "-i", "pipe.data").stdout, table)

    def test_csv_is_what_readers_of_csv_read(self):
        self.write()
        rows = list(csv.reader(io.StringIO(self.output("--columns", "path,lat,list", "--csv")[0], newline="")))
        self.assertEqual(rows, [["path", "lat", "list"], ["/etc/a,b", "1", ""], ["/tmp/\\x1b[31m", "10", ""], ["", "", "1,2,3"]])

    def test_a_late_wide_value_widens_its_column(self):
        self.write([("/short", 0)] * 1200 + [("/" + 30 * "x", 0), ("/y", 0)])
        lines = self.output("--columns", "path,error")[0].splitlines()
        self.assertEqual(len(lines), 1205)
        self.assertTrue(lines[1000].startswith("/short "))
        self.assertEqual(lines[-2], "/" + 30 * "x" + " OK")
        self.assertEqual(lines[-1], "/y" + 29 * " " + " OK")

    def test_wrong_words_are_answered(self):
        self.write()
        for words, said in [(["--columns", "pth"], "there is no 'pth' here; did you mean 'path'?"), (["--columns", ""], "names no column"),
                            (["--csv"], "--csv goes with --columns"), (["--columns", "pid", "-F", "ip"], "-F does not go with --columns"),
                            (["--columns", "pid", "--importer"], "--importer does not go"),
                            (["--columns", "pid", "--json", "--csv"], "take one of them"),
                            (["--event", "opne"], "--event: there is no event 'opne'; did you mean 'open'?")]:
            out, error = self.output(*words, status=1)
            self.assertEqual(out, "", words)
            self.assertIn(said, error)


if __name__ == "__main__":
    programs.main()
