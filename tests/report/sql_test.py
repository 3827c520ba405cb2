#!/usr/bin/env python3
"""tacho sql: what a query over a capture's tables gives, beside what other commands count."""
import collections
import csv
import io
import json
import shutil
import struct
import subprocess
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


class Tables(programs.Scratch):
    """tacho export --to tables."""

    def setUp(self):
        super().setUp()
        self.capture = made_payload.capture(chains=True, op=[Field("lat", unit="ns", role="weight")])
        for number in range(3):
            self.capture.sample(chain=[made.CONTEXT_USER, made.LEAF_A, made.MAIN], raw=struct.pack("<Q", number + 1))
        (self.folder / "perf.data").write_bytes(self.capture.file())

    def table(self, name, folder="out"):
        (file,) = (self.folder / folder).glob(f"{name}.*")
        text = file.read_bytes()
        if file.suffix == ".zst":
            text = subprocess.run(["zstd", "-dc"], input=text, capture_output=True, check=True).stdout
        if ".csv" in file.name:
            return list(csv.DictReader(io.StringIO(text.decode())))
        return [json.loads(line) for line in text.splitlines()]

    def test_both_forms_have_the_same_values(self):
        self.tacho("export", "--to", "tables", "--plain", "--service", "shop", "perf.data", "out")
        self.tacho("export", "--to", "tables", "--plain", "--service", "shop", "--json", "-o", "json")
        for name in ("captures", "samples", "stacks", "frames", "events", "losses"):
            rows = self.table(name)
            as_json = self.table(name, "json")
            self.assertEqual(len(rows), len(as_json), name)
            for row, other in zip(rows, as_json):
                text = {key: value if isinstance(value, str) else json.dumps(value, separators=(",", ":")) for key, value in other.items()}
                self.assertEqual(row, text)
        self.assertEqual([int(row["value"]) for row in self.table("samples")], [1, 2, 3])
        self.assertEqual({row["service"] for row in self.table("samples")}, {"shop"})
        self.assertEqual([row["lat"] for row in map(json.loads, (row["payload"] for row in self.table("events")))], [1, 2, 3])

    @unittest.skipUnless(shutil.which("zstd"), "needs zstd")
    def test_tables_are_packed_and_samples_chosen(self):
        self.tacho("export", "--to", "tables", "--where", "lat > 1", "out")
        self.assertEqual([int(row["value"]) for row in self.table("samples")], [2, 3])
        self.tacho("export", "--to", "tables", "--where", "nothing > 1", "out", status=1)

    def test_a_part_of_a_capture_has_another_id_than_the_whole(self):
        ids = []
        for folder, words in enumerate(((), ("--where", "lat > 1"), ("--where", "lat > 2"), ("--where", "lat > 1"), ("--comm", "spin"))):
            self.tacho("export", "--to", "tables", "--plain", *words, "perf.data", f"{folder}")
            (row, ) = self.table("captures", f"{folder}")
            ids.append(row["capture_id"])
            self.assertEqual({row["capture_id"] for row in self.table("samples", f"{folder}")} - {row["capture_id"]}, set())
            self.assertEqual(row["file"], str(self.folder / "perf.data"))
        self.assertEqual(ids[1], ids[3])
        self.assertEqual(len(set(ids)), 4)

    def test_wrong_words_and_places_are_refused(self):
        self.assertIn("name a folder", self.tacho("export", "--to", "tables", status=1).stderr.decode())
        self.tacho("export", "--to", "tables", "perf.data", "/none/there/out", status=4)
        self.tacho("export", "--to", "tables", "none.data", "out", status=2)
        self.assertFalse((self.folder / "out").exists())


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

    def test_the_engine_reads_exported_tables(self):
        self.write()
        for form, reader in (("--csv", "read_csv('out/samples.*.csv.zst')"), ("--json", "read_json('out/samples.*.ndjson.zst')")):
            self.tacho("export", "--to", "tables", form, "perf.data", "out")
            self.assertEqual(self.rows(f"SELECT sum(value)::BIGINT AS sum FROM {reader}"), [{"sum": sum(value for _, value in self.values)}])

    def test_a_wrong_query_is_an_error(self):
        self.write()
        done = self.tacho("sql", "perf.data", "SELECT nothing FROM samples", status=1)
        self.assertIn("nothing", done.stderr.decode())
        self.assertEqual(done.stdout, b"")

    def test_rows_that_cannot_be_shown_are_not_passed_over(self):
        self.write()
        said = self.tacho("sql", "perf.data", "DELETE FROM samples WHERE value = 1 RETURNING value", status=1).stderr.decode()
        self.assertIn("its rows are not shown, as they are not those of a SELECT", said)
        self.assertEqual(self.tacho("sql", "--json", "perf.data", "DELETE FROM samples WHERE value > 1; SELECT count(*) AS n FROM samples").stdout, b'{"n":1}\n')

    def test_nothing_is_left_behind(self):
        self.write()
        scratch = self.folder / "scratch"
        scratch.mkdir()
        self.enterContext(unittest.mock.patch.dict("os.environ", TMPDIR=str(scratch)))
        self.rows("SELECT 1 AS x")
        self.assertEqual(list(scratch.iterdir()), [])


if __name__ == "__main__":
    programs.main()
