#!/usr/bin/env python3
"""A pipe whose header sections come before its events (perf inject writes such) is read like any other."""
import struct

import programs
from programs import ROOT

ATTR, FEATURE = 64, 80
PIPE_HEAD = 16


def records(pipe):
    at = PIPE_HEAD
    while at < len(pipe):
        type_, _, size = struct.unpack_from("<IHH", pipe, at)
        yield type_, pipe[at:at + size]
        at += size


class PipeOrder(programs.Scratch):
    def test_sections_before_events(self):
        pipe = (ROOT / "tests/golden/captures/pipe.data").read_bytes()
        turned = pipe[:PIPE_HEAD]
        head = list(records(pipe))
        for wanted in [FEATURE, ATTR]:
            turned += b"".join(record for type_, record in head if type_ == wanted)
        turned += b"".join(record for type_, record in head if type_ not in (FEATURE, ATTR))
        self.assertEqual(len(turned), len(pipe))
        (self.folder / "turned").write_bytes(turned)
        (self.folder / "pipe").write_bytes(pipe)

        def said(capture, start):
            done = self.tacho("dump", "-i", capture)
            self.assertEqual(done.stderr, b"")
            return sorted(line for line in done.stdout.splitlines() if line.startswith(start))

        sections = said("turned", b"FEATURE feature=")
        self.assertGreater(len(sections), 10)
        self.assertEqual(sections, said("pipe", b"FEATURE feature="))
        self.assertEqual(len(said("turned", b"SAMPLE ")), len(said("pipe", b"SAMPLE ")))


if __name__ == "__main__":
    programs.main()
