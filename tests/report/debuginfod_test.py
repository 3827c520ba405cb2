#!/usr/bin/env python3
"""debuginfod servers are used only with --debuginfod, for modules with samples, once for each: a missing file is not
requested again, and a server that does not answer delays at most for the timeout."""
import ctypes.util
import http.server
import struct
import threading
import time
import unittest

import made_capture as made
import programs

BUILD_ID = 2  # header feature
HIT, OTHER = "aa" * 20, "bb" * 20


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, hangs=False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.released = [], threading.Event()
        if not hangs:
            self.released.set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def end(self):
        self.released.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        self.server.asked.append(self.path)
        self.server.released.wait(programs.PATIENCE)
        self.send_error(404)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def build_id(path, hex_id):
    name = path.encode().ljust((len(path) + 64) // 64 * 64, b"\0")
    return made.record(67, made.USER, struct.pack("<i20sB3x", made.PID, bytes.fromhex(hex_id), 20) + name)


@unittest.skipUnless(ctypes.util.find_library("debuginfod"), "needs libdebuginfod1")
class Debuginfod(programs.Scratch):
    def setUp(self):
        super().setUp()
        ids = build_id("/gone/hit", HIT) + build_id("/gone/other", OTHER)
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL), features={BUILD_ID: ids}).started()
        capture.mapped(made.PID, 0x10000, 0x1000, 0, "/gone/hit").mapped(made.PID, 0x20000, 0x1000, 0, "/gone/other")
        capture.sample(ip=0x10010)
        (self.folder / "perf.data").write_bytes(capture.file())

    def ask(self, server, *words, **more):
        url = f"http://127.0.0.1:{server.server_address[1]}"
        settings = {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(self.folder / "cache"), **more}
        return self.run_program("env", *(f"{name}={value}" for name, value in settings.items()), programs.BIN / "tacho-report",
                                *words, status=None)

    def test_only_modules_that_were_hit_are_requested_and_once(self):
        server = Server()
        self.addCleanup(server.end)
        self.ask(server, "script", "-i", "perf.data")
        self.assertEqual(server.asked, [], "nobody wanted it")
        for words in (["script", "-i", "perf.data", "--debuginfod"], ["pack", "perf.data", "-o", "packed.data", "--debuginfod"]):
            self.ask(server, *words)
            first = list(server.asked)
            self.assertTrue(first, words)
            self.assertTrue(all(HIT in path for path in first), first)
        self.assertEqual(len(set(first)), len(first), "what it does not have is asked for once")

    def test_one_that_cannot_be_reached_is_said(self):
        server = Server()
        server.end()
        for words in (["script", "-i", "perf.data", "--debuginfod"], ["pack", "perf.data", "-o", "packed.data", "--debuginfod"]):
            done = self.ask(server, *words)
            self.assertRegex(done.stderr.decode(), rf"debuginfod: build id {HIT}: .*; symbols may be missing that the servers in DEBUGINFOD_URLS have\n")

    def test_one_that_does_not_answer_is_left(self):
        server = Server(hangs=True)
        self.addCleanup(server.end)
        began = time.monotonic()
        done = self.ask(server, "script", "-i", "perf.data", "--debuginfod", DEBUGINFOD_MAXTIME="2")
        self.assertTrue(server.asked)
        self.assertLess(time.monotonic() - began, programs.PATIENCE / 2)
        self.assertEqual(len(done.stdout.splitlines()), 1)
        self.assertIn(b"/gone/hit", done.stderr)


if __name__ == "__main__":
    programs.main()
