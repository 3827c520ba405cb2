#!/usr/bin/env python3
"""tacho doctor is right about this host: what it calls ok works, what it calls missing is refused."""
import json
import unittest

import programs


@programs.needs_root
class Doctor(programs.Scratch):
    def findings(self):
        done = self.tacho("doctor", "--json")
        reported = json.loads(done.stdout)
        self.assertIs(reported["recording"], True)
        return {each["name"]: each for each in reported["findings"]}

    def test_its_statements_are_true(self):
        findings = self.findings()
        for name, words in [("own processes", ["-e", "cpu-clock:u"]), ("kernel mode", ["-e", "cpu-clock"]),
                            ("system-wide", ["-a"]), ("tracepoints", ["-e", "sched:sched_switch"]),
                            ("cgroups", ["-e", "cpu-clock", "-G", "/"])]:
            with self.subTest(finding=name):
                done = self.tacho("record", "-q", "-o", "x.data", *words, "--", "true", status=None)
                self.assertEqual(done.returncode == 0, findings[name]["state"] == "ok", done.stderr.decode())
        for each in findings.values():
            self.assertEqual(each["state"] == "ok", each["consequence"] == "", each)

    def test_a_user_without_rights_reads_what_to_do(self):
        recorder = programs.BIN / "tacho-record"
        done = self.run_program("setpriv", "--reuid=54321", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
                                recorder, "--doctor", status=None)
        if done.returncode not in (0, 2):
            self.skipTest("another user cannot run the program here")
        text = done.stdout.decode()
        self.assertIn("limited  rights", text)
        self.assertIn("fix: sudo setcap cap_perfmon,cap_bpf", text)
        self.assertIn("Operation not permitted", text, "no BPF program")

    def test_text_and_help(self):
        text = self.tacho("doctor").stdout.decode()
        self.assertTrue(text.endswith("Recording is possible here.\n"), text)
        self.assertIn("Usage: tacho doctor [--json]", self.tacho("help", "doctor").stdout.decode())
        self.assertEqual(self.tacho("doctor", "--jsn", status=1).stdout, b"")


if __name__ == "__main__":
    programs.main()
