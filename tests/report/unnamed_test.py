#!/usr/bin/env python3
"""Code without symbols: one row for each function in .eh_frame, with and without the binary."""
import bisect
import collections
import json
import re
import shutil
import unittest
from pathlib import Path

import made_capture as made
import programs

MOST = 400  # functions of a file


def short(symbol, known):
    """perf's name of a function: without the parameters and the result that tell overloads apart."""
    if symbol in known:
        return symbol
    text, depth = re.sub(r"( const| \[clone [^]]*\])+$", "", symbol), 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            text = text[:at] if text[at] == "(" else text
            break
    while text not in known and " " in text:
        text = text.split(" ", 1)[1]
    return text


class Unnamed(programs.Scratch):
    def files(self):
        found = [Path("/bin/ls"), Path("/usr/bin/python3")]
        if shutil.which("g++"):
            found.append(Path(self.run_program("g++", "-print-prog-name=cc1plus").stdout.decode().strip()))
        return [path.resolve() for path in found if path.is_absolute() and path.exists()]

    def functions(self, path):
        """[start, end) of each function in .eh_frame, as file offsets."""
        loads = [tuple(int(word, 16) for word in line.split()[1:5]) for line in
                 self.run_program("readelf", "-lW", path).stdout.decode().splitlines() if line.split()[:1] == ["LOAD"]]
        ranges = []
        for start, end in re.findall(r"FDE cie=\w+ pc=(\w+)\.\.(\w+)",
                                     self.run_program("readelf", "--debug-dump=frames", path).stdout.decode()):
            start, end = int(start, 16), int(end, 16)
            for offset, address, _, size in loads:
                if address <= start < address + size:
                    ranges.append((start - address + offset, end - address + offset))
        return sorted(ranges)

    def write(self, path, addresses, chains=()):
        event = made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | (made.CALLCHAIN if chains else 0))
        capture = made.Capture(event).started()
        size = (path.stat().st_size + 4095) // 4096 * 4096
        capture.mapped(made.PID, made.START, size, 0, str(path))
        pieces = [capture.data]
        for address, chain in [(at, None) for at in addresses] + [(chain[0], chain) for chain in chains]:
            capture.data = b""
            more = {"chain": [made.CONTEXT_USER, *(made.START + at for at in chain or [address])]} if chains else {}
            capture.sample(ip=made.START + address, **more)
            pieces.append(capture.data)
        capture.data = b"".join(pieces)
        (self.folder / "a.data").write_bytes(capture.file())

    def test_every_address_of_a_function_is_in_one_row(self):
        for path in self.files():
            functions = self.functions(path)
            self.assertGreater(len(functions), 3, path)
            some = functions[::max(1, len(functions) // MOST)]
            addresses = [at for start, end in some for at in sorted({start, (start + end) // 2, end - 1})]
            self.write(path, addresses)
            as_perf = self.tacho("script", "--as-perf", "-F", "ip,sym", "-i", "a.data", status=None).stdout.decode().split("\n")
            as_perf = [line.split(None, 1)[1] for line in as_perf if line.strip()]
            self.assertEqual(len(as_perf), len(addresses))
            right, unnamed = collections.Counter(), 0
            for at, symbol in zip(addresses, as_perf):
                start = functions[bisect.bisect_right(functions, (at, 1 << 64)) - 1][0]
                if symbol == "[unknown]":
                    symbol = f"{path.name}+{start:#x}"
                    unnamed += 1
                right[symbol] += 1
            if path.name == "ls":
                self.assertGreater(unnamed, 30, path)
            report = json.loads(self.tacho("report", "--json", "--no-children", "--sort", "sym", "-i", "a.data",
                                           status=None).stdout)
            sums, rows = collections.Counter(), []
            for row in report["reports"][0]["rows"]:
                symbol = short(row["keys"]["symbol"], right)
                sums[symbol] += row["self"][0]["samples"]  # static functions may share a name
                rows += [symbol] if row.get("kind") == "unnamed" else []
            self.assertEqual(sums, right, path)
            self.assertEqual(sum(sums.values()), len(addresses))
            self.assertEqual(sorted(rows), sorted(symbol for symbol in right if symbol.startswith(path.name + "+0x")))

    def test_other_machines_give_the_same_names(self):
        path = Path("/bin/ls").resolve()
        functions = self.functions(path)
        neighbours = [(a, b) for a, b in zip(functions, functions[1:]) if a[1] == b[0]]
        # A call as last instruction: its return address is in the next function.
        chains = [[b[0], a[1], functions[0][0] + 1] for a, b in neighbours] + [[a[0], a[1]] for a in functions[::3]]
        self.write(path, [], chains)
        self.tacho("pack", "a.data", "-o", "packed.data", status=None)
        shown = {}
        for words in (["report"], ["report", "--no-children", "-g", "none"], ["folded"], ["script"], ["flamegraph"],
                      ["report", "--as-perf"], ["folded", "--as-perf"]):
            here = self.tacho(*words, "-i", "a.data", status=None).stdout
            shown[" ".join(words)] = here.decode()
            elsewhere = self.tacho(*words, "-i", "packed.data", "--symfs", "/dev/null", status=None).stdout
            self.assertEqual(here, elsewhere, words)
        self.assertIn("ls+0x", shown["folded"])
        self.assertNotIn("ls+0x", shown["folded --as-perf"])
        self.assertNotIn("ls+0x", shown["report --as-perf"])
        lines = [line.rsplit(" ", 1)[0] for line in shown["folded"].splitlines()]
        pairs = {f"ls+{a[0]:#x};ls+{b[0]:#x}" for a, b in neighbours}
        self.assertGreater(sum(any(line.endswith(pair) for pair in pairs) for line in lines), 20)

    def test_a_function_without_a_symbol_is_unresolved(self):
        path = Path("/bin/ls").resolve()
        start = self.functions(path)[-1][0]
        self.write(path, [start])
        script = json.loads(self.tacho("script", "--json", "-i", "a.data", status=None).stdout.split(b"\n")[0])
        self.assertEqual(script["stack"][0]["kind"], "unnamed")
        said = self.tacho("report", "--no-children", "-U", "-i", "a.data", status=None).stdout.decode()
        self.assertNotIn("ls+0x", said)


if __name__ == "__main__":
    unittest.main()
