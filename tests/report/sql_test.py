#!/usr/bin/env python3
"""tacho sql: what a query over a capture's tables gives, beside what other commands count."""
import collections
import json
import struct
import unittest
import unittest.mock

import duckdb_library
import made_capture as made
import made_payload
import programs
from made_payload import TEXT, Field


class WithoutDuckDb(programs.Scratch):
    def test_what_to_install_is_said_before_anything_is_read(self):
        done = self.tacho("sql", "--duckdb", "/none/libduckdb.so", "there_is_no.data", "SELECT 1", status=2)
        self.assertIn("npm package @duckdb/node-api", done.stderr.decode())
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        (self.folder / "libother.so").write_bytes(b"")
        done = self.tacho("sql", "--duckdb", self.folder / "libother.so", "there_is_no.data", "SELECT 1", status=2)
        self.assertIn("DuckDB", done.stderr.decode())

    def test_wrong_words_are_refused(self):
        for words in (["sql"], ["sql", "a.data", "SELECT 1", "SELECT 2"]):
            self.assertIn("tacho sql FILE 'SELECT", self.tacho(*words, status=1).stderr.decode())


@unittest.skipIf(duckdb_library.why_absent(), duckdb_library.why_absent())
class Sql(programs.Scratch):
    def write(self):
        capture = made_payload.capture(chains=True, op=[Field("lat", unit="ns", role="weight"), Field("file", TEXT, 1, 12)])
        self.values = []
        for number in range(50):
            name = ["a", "b,c", 'd"', "it's;"][number % 4]
            self.values.append((name, number + 1))
            capture.sample(chain=[made.CONTEXT_USER, made.LEAF_A if number % 2 else made.LEAF_B, made.MAIN],
                           raw=struct.pack("<Q12s", number + 1, name.encode()))
        (self.folder / "perf.data").write_bytes(capture.file())

    def rows(self, query, *words):
        return [json.loads(line) for line in self.tacho("sql", "--json", *words, "perf.data", query).stdout.splitlines()]

    def test_sums_are_those_of_folded(self):
        self.write()
        folded = sum(int(line.rsplit(" ", 1)[1]) for line in self.tacho("folded").stdout.decode().splitlines())
        self.assertEqual(folded, sum(value for _, value in self.values))
        self.assertEqual(self.rows("SELECT count(*) AS n, sum(value)::BIGINT AS sum, min(unit) AS unit FROM samples"),
                         [{"n": 50, "sum": folded, "unit": "ns"}])
        stacks = self.rows("SELECT len(frame_ids) AS frames, sum(value)::BIGINT AS sum FROM samples JOIN stacks USING (stack_id) "
                           "GROUP BY stack_id, frame_ids ORDER BY sum")
        self.assertEqual([row["frames"] for row in stacks], [2, 2])
        self.assertEqual(self.rows("SELECT count(*) AS n FROM (SELECT unnest(frame_ids) AS frame_id FROM stacks) "
                                   "ANTI JOIN frames USING (frame_id)"), [{"n": 0}])

    def test_payloads_are_json(self):
        self.write()
        sums = collections.Counter()
        for name, value in self.values:
            sums[name] += value
        rows = self.rows("SELECT payload->>'file' AS file, sum((payload->>'lat')::BIGINT)::BIGINT AS lat FROM events GROUP BY 1")
        self.assertEqual({row["file"]: row["lat"] for row in rows}, sums)

    def test_forms(self):
        self.write()
        query = "SELECT 'a,b' AS x, 1 AS y, NULL AS z, [1, 2] AS list"
        self.assertEqual(self.tacho("sql", "perf.data", query).stdout.decode(), "x    y  z  list\na,b  1  -  [1, 2]\n")
        self.assertEqual(self.tacho("sql", "--csv", "perf.data", query).stdout.decode(), 'x,y,z,list\n"a,b",1,,"[1, 2]"\n')
        self.assertEqual(self.tacho("sql", "--json", "perf.data", query).stdout.decode(),
                         '{"x":"a,b","y":1,"z":null,"list":"[1, 2]"}\n')
        self.tacho("sql", "-o", "out.csv", "--csv", "perf.data", "SELECT 1 AS x; SELECT 2 AS x")
        self.assertEqual((self.folder / "out.csv").read_text(), "x\n1\n\nx\n2\n")

    def test_a_wrong_query_is_an_error(self):
        self.write()
        done = self.tacho("sql", "perf.data", "SELECT nothing FROM samples", status=1)
        self.assertIn("nothing", done.stderr.decode())
        self.assertEqual(done.stdout, b"")

    def test_nothing_is_left_behind(self):
        self.write()
        scratch = self.folder / "scratch"
        scratch.mkdir()
        self.enterContext(unittest.mock.patch.dict("os.environ", TMPDIR=str(scratch)))
        self.rows("SELECT 1 AS x")
        self.assertEqual(list(scratch.iterdir()), [])


if __name__ == "__main__":
    programs.main()
