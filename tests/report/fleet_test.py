#!/usr/bin/env python3
"""tacho fleet: captures of many hosts in one database; what questions give, beside what other commands print of the captures."""
import collections
import json
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

import chdb_engine
import duckdb_library
import made_capture as made
import made_payload
import programs
from made_payload import TEXT, Field

HOUR = 3_600_000_000_000
WALL = time.time_ns() // HOUR * HOUR - 4 * HOUR  # ns since 1970; of a day, since ClickHouse drops old samples


def clock(offset):
    """The section that gives times since 1970 to a capture: its own clock's 0 is `offset` ns after WALL."""
    return {made.CLOCK_DATA: struct.pack("<IIQQ", 1, 4, WALL + offset, 0)}


OTHER, OTHER_CODE = "/usr/lib/libother.so", 0x7f0000000100


def capture(host, weights, offset=0):
    """A capture with a sample in each of two files, of these weights."""
    clocks = [made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)]
    one = made.Capture(*clocks, features={made.HOSTNAME: made.header_string(host), **clock(offset)}).started()
    one.mapped(made.PID, OTHER_CODE & ~0xfff, 0x1000, 0, OTHER)
    for leaf, weight in zip((made.LEAF_A, OTHER_CODE), weights):
        one.sample(ip=leaf, period=weight, chain=[made.CONTEXT_USER, leaf, made.MAIN + 4])
    return one.file()


def program(*symbols):
    """An ELF file with these functions: (name, address)."""
    names, table, size = b"\0.text\0.symtab\0.strtab\0", bytes(24), 0x2000  # names: also those of sections
    for name, address in symbols:
        table += struct.pack("<IBBHQQ", len(names), 0x12, 0, 1, address, 0x20)
        names += name.encode() + b"\0"
    section = struct.Struct("<IIQQQQIIQQ").pack
    sections = bytes(64) + section(1, 1, 6, 0x1000, 0x1000, 0x1000, 0, 0, 16, 0)
    sections += section(7, 2, 0, 0, size, len(table), 3, 1, 8, 24)
    sections += section(15, 3, 0, 0, size + len(table), len(names), 0, 0, 1, 0)
    end = size + len(table) + len(names)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0x1000, 64, end, 0, 64, 56, 1, 64, 4, 3)
    head += struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096)
    return head + bytes(size - len(head)) + table + names + sections


class Verbs(programs.Scratch):
    def test_an_unknown_verb_is_refused_with_those_there_are(self):
        self.assertIn("load, flamegraph", self.tacho("fleet", "lod", status=1).stderr.decode())
        self.assertIn("series", self.tacho("fleet", "--help").stdout.decode())

    def test_times_and_sides_are_checked(self):
        done = self.tacho("fleet", "top", "--db", "x", "--from", "yesterday", status=1)
        self.assertIn("2026-11-29T01:30:05Z", done.stderr.decode())


class Asked:
    """What holds for both engines."""

    def write(self, name, *arguments, **more):
        (self.folder / name).write_bytes(capture(*arguments, **more))

    def load(self, *words, status=0):
        done = self.tacho("fleet", "load", "--db", self.database, *words, status=status)
        return done.stdout.decode(), done.stderr.decode()

    def ask(self, verb, *words, status=0):
        return self.tacho("fleet", verb, "--db", self.database, *words, status=status).stdout.decode()

    def rows(self, verb, *words):
        return [json.loads(line) for line in self.ask(verb, "--json", *words).splitlines()]

    def folded(self, *words):
        sums = collections.Counter()
        for line in self.ask("folded", *words).splitlines():
            stack, weight = line.rsplit(" ", 1)
            sums[stack] += int(weight)
        return sums

    def folded_files(self, *names):
        sums = collections.Counter()
        for name in names:
            for line in self.tacho("folded", "-i", name).stdout.decode().splitlines():
                stack, weight = line.rsplit(" ", 1)
                sums[stack.split(";", 1)[1]] += int(weight)  # without the thread's name
        return sums

    def test_stacks_of_all_captures_are_those_of_folded(self):
        names = [f"{number}.data" for number in range(4)]
        for number, name in enumerate(names):
            self.write(name, f"host{number}", (number + 1, 10))
        self.assertEqual(self.load(*names)[0], "4 captures loaded, 0 there before, 0 set aside\n")
        self.assertEqual(self.folded(), self.folded_files(*names))
        self.assertEqual(self.folded("--host", "host1"), self.folded_files("1.data"))

    def test_names_that_come_later_name_all_captures(self):
        self.write("a.data", "one", (1, 2))
        self.load("--symfs", "/dev/null", "a.data")
        self.assertEqual({row["function"] for row in self.rows("top")}, {"[spin]", "[libother.so]"})
        self.write_symbols()
        self.write("b.data", "two", (1, 2))
        self.load("--symfs", "root", "b.data")
        self.assertEqual({row["function"]: row["total"] for row in self.rows("top")}, {"main": 6, "leaf_a": 2, "[libother.so]": 4})
        # Names stay when a capture without them comes.
        self.write("c.data", "three", (1, 2))
        self.load("--symfs", "/dev/null", "c.data")
        self.assertEqual({row["function"]: row["total"] for row in self.rows("top")}, {"main": 9, "leaf_a": 3, "[libother.so]": 6})

    def test_loading_twice_adds_nothing(self):
        self.write("a.data", "one", (1, 2))
        self.load("a.data")
        before = self.folded()
        (self.folder / "copy.data").write_bytes((self.folder / "a.data").read_bytes())
        self.assertEqual(self.load("a.data", "copy.data")[0], "0 captures loaded, 2 there before, 0 set aside\n")
        self.assertEqual(self.folded(), before)

    def test_what_is_broken_is_set_aside_by_name(self):
        self.write("a.data", "one", (1, 2))
        whole = (self.folder / "a.data").read_bytes()
        (self.folder / "cut.data").write_bytes(whole[:len(whole) * 2 // 3])
        (self.folder / "text.data").write_text("no capture")
        out, err = self.load("cut.data", "text.data", "none.data", "a.data", status=3)
        self.assertEqual(out, "1 capture loaded, 0 there before, 3 set aside\n")
        for name in ("cut.data", "text.data", "none.data"):
            self.assertIn(f"tacho fleet: {name}: set aside: ", err)
        self.assertEqual(self.folded(), self.folded_files("a.data"))

    def test_names_do_not_reach_the_sql(self):
        hostile = "x'); DROP TABLE samples; --"
        payload = made_payload.capture(op=[Field("lat", unit="ns", role="weight"), Field("file", TEXT, 1, 40)])
        payload.named(hostile[:15])
        payload.sample(raw=struct.pack("<Q40s", 7, hostile.encode()))
        (self.folder / "x'y.data").write_bytes(payload.file())
        self.load("--service", hostile, "--host", hostile, "x'y.data")
        self.assertEqual(sum(self.folded("--service", hostile).values()), 7)
        self.assertEqual(self.rows("captures", "--host", hostile)[0]["host"], hostile)
        self.tacho("fleet", "top", "--db", self.database, "--service", "' OR '1'='1", status=2)

    def test_differences_top_and_captures(self):
        self.write("old.data", "one", (100, 300))
        self.write("new.data", "two", (300, 100))
        self.load("--service", "shop", "--release", "2.0", "old.data")
        self.load("--service", "shop", "--release", "2.1", "new.data")
        top = self.rows("top", "--service", "shop")
        self.assertEqual({row["function"]: (row["self"], row["total"]) for row in top}, {"[libother.so]": (400, 400), "[spin]": (400, 800)})
        changes = self.rows("diff", "--release", "2.1", "--base", "release=2.0")
        self.assertEqual({row["function"]: row["change"] for row in changes}, {"[libother.so]": -50, "[spin]": 50})
        two = self.ask("folded", "--release", "2.1", "--base", "release=2.0").splitlines()
        self.assertEqual(sum(int(line.rsplit(" ", 2)[1]) for line in two), 400)
        captures = self.rows("captures", "--release", "2.1")
        self.assertEqual([(row["file"], row["host"], row["value"]) for row in captures], [(str(self.folder / "new.data"), "two", 400)])
        self.ask("flamegraph", "--base", "release=2.0", "--release", "2.1", "-o", "shop.svg", "--", "--width", "800")
        self.assertIn(b"release 2.1", (self.folder / "shop.svg").read_bytes())

    def test_times(self):
        for hour in range(3):
            self.write(f"{hour}.data", "one", (hour + 1, 10), offset=hour * HOUR)
            self.load(f"{hour}.data")
        whole = self.folded_files("0.data", "1.data", "2.data")
        begin = WALL // 1_000_000_000
        self.assertEqual(self.folded("--from", begin, "--to", begin + 3 * 3600), whole)
        self.assertEqual(self.folded("--from", begin + 3600, "--to", begin + 7200), self.folded_files("1.data"))
        self.assertEqual(self.folded("--from", begin + 1, "--to", begin + 7199), self.folded_files("0.data", "1.data"))
        series = self.rows("series", "--function", "none")
        self.assertEqual([(row["total"], row["function_value"]) for row in series], [(11, 0), (12, 0), (13, 0)])

    def load_three_hours(self):
        """Samples at minute 1, 59, 61 and 125, two of them in another file. Returns the second when they begin."""
        one = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN), features=clock(0)).started()
        one.mapped(made.PID, OTHER_CODE & ~0xfff, 0x1000, 0, OTHER)
        for minute, weight, leaf in ((1, 3, made.LEAF_A), (59, 5, OTHER_CODE), (61, 7, made.LEAF_A), (125, 11, OTHER_CODE)):
            one.time = minute * 60_000_000_000
            one.sample(ip=leaf, period=weight, chain=[made.CONTEXT_USER, leaf])
        (self.folder / "long.data").write_bytes(one.file())
        self.write_symbols()
        self.load("--symfs", "root", "long.data")
        return WALL // 1_000_000_000

    def write_symbols(self):
        """The file of main and leaf_a, below root."""
        (self.folder / "root/tmp/c").mkdir(parents=True)
        (self.folder / "root/tmp/c/spin").write_bytes(program(("main", 0x10a0), ("leaf_a", 0x1280)))

    def test_a_series_of_whole_hours_is_that_of_its_samples(self):
        """Steps of hours are sums of hours; what begins or ends between them is of the samples themselves."""
        begin = self.load_three_hours()

        def series(*words):
            return [(row["time"], row["total"], row["function_value"]) for row in self.rows("series", "--function", "leaf_a", *words)]
        for step in (3600, 7200):
            whole = series("--step", step)
            self.assertEqual(whole, series("--step", step, "--from", begin + 1))
            self.assertEqual((sum(total for _, total, _ in whole), sum(value for *_, value in whole)), (26, 10))
        self.assertEqual([row[1:] for row in series()], [(8, 3), (7, 7), (11, 0)])
        self.assertEqual([row[1:] for row in series("--from", begin + 3600, "--to", begin + 3 * 3600)], [(7, 7), (11, 0)])
        self.assertEqual([row[1:] for row in series("--from", begin + 3500, "--to", begin + 3 * 3600)], [(5, 0), (7, 7), (11, 0)])

    def test_captures_have_the_sums_of_the_samples_that_were_chosen(self):
        begin = self.load_three_hours()
        for start, end, expected in ((0, 10800, (4, 26)), (0, 3600, (2, 8)), (3600, 7200, (1, 7)), (120, 3700, (2, 12))):
            [row] = self.rows("captures", "--from", begin + start, "--to", begin + end)
            self.assertEqual((row["samples"], row["value"]), expected)



class Server(programs.Scratch):
    """A server of ClickHouse that answers by hand."""

    def ask(self, answer, reads=None):
        """What tacho fleet says when each connection gets this answer, after `reads` bytes of the statement."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)

        def serve():
            while True:
                try:
                    connection = listening.accept()[0]
                except OSError:
                    return
                with connection:
                    connection.recv(reads or 65536)
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
        threading.Thread(target=serve, daemon=True).start()
        return self.tacho("fleet", "top", "--db", f"http://127.0.0.1:{listening.getsockname()[1]}/default", status=2).stderr.decode()

    def test_an_empty_answer_is_no_empty_table(self):
        self.assertIn("its answer is no table", self.ask(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"))
        self.assertIn("its answer is no table", self.ask(b"HTTP/1.0 200 OK\r\n\r\nevent\n"))
        self.assertIn("has no samples of that choice", self.ask(b"HTTP/1.0 200 OK\r\n\r\nevent\tunit\tsamples\tvalue\nString\tString\tUInt64\tUInt64\n"))

    def test_a_refusal_is_said(self):
        self.assertIn("ClickHouse: no such user", self.ask(b"HTTP/1.0 403 Forbidden\r\n\r\nno such user\n"))
        self.assertIn("ClickHouse: the connection ended without an answer", self.ask(b""))


@unittest.skipIf(duckdb_library.why_absent(), duckdb_library.why_absent())
class Fleet(Asked, programs.Scratch):
    database = "fleet.db"

    def test_a_question_makes_no_database(self):
        self.tacho("fleet", "top", "--db", "fleet.db", status=2)
        self.assertFalse((self.folder / "fleet.db").exists())

    def test_a_folder_is_followed(self):
        spool = self.folder / "spool"
        spool.mkdir()
        follower = subprocess.Popen([programs.BIN / "tacho", "fleet", "load", "--db", "fleet.db", "--follow", "spool"],
                                    cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(follower.kill)
        data = capture("one", (1, 2))
        # As a recorder writes it: the size of the data comes last.
        open_file = bytearray(data)
        open_file[48:56] = bytes(8)
        (spool / "a.data").write_bytes(open_file)
        time.sleep(1)
        (spool / "a.data").write_bytes(data)
        (spool / "b.data").write_bytes(capture("two", (3, 4)))
        expected = None
        for _ in range(100):
            time.sleep(0.1)
            done = self.tacho("fleet", "captures", "--db", "fleet.db", "--json", status=None)
            expected = done.stdout.count(b"\n")
            if expected == 2:
                break
        follower.send_signal(signal.SIGINT)
        out, err = follower.communicate(timeout=30)
        self.assertEqual(expected, 2, err)
        self.assertIn(b"2 captures loaded", out)


@unittest.skipIf(chdb_engine.why_absent(), chdb_engine.why_absent())
class OnClickHouse(Asked, programs.Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "server").mkdir()
        self.start()

    def start(self, dies_at=None):
        self.server, self.database = chdb_engine.start(self.folder / "server", dies_at)
        self.addCleanup(self.stop, self.server)

    def stop(self, server):
        server.kill()
        server.wait()

    def test_a_server_that_dies_in_a_load_loses_and_doubles_nothing(self):
        names = ["0.data", "1.data"]
        for number, name in enumerate(names):
            self.write(name, f"host{number}", (number + 1, 10))
        self.load("0.data")
        for dies_at in (10, 13, 15, 18):  # 8 statements of the schema, 1 question, 3 of "clear", 6 tables
            self.stop(self.server)
            self.start(dies_at)
            out, err = self.load("1.data", status=3)
            self.assertIn("1.data: set aside: ClickHouse", err)
        self.stop(self.server)
        out, err = self.load("1.data", status=2)
        self.assertIn("Connection refused", err)
        self.start()
        self.assertEqual(self.load(*names)[0], "1 capture loaded, 1 there before, 0 set aside\n")
        self.assertEqual(self.folded(), self.folded_files(*names))
        self.assertEqual(sum(row["value"] for row in self.rows("captures")), 23)


if __name__ == "__main__":
    programs.main()
