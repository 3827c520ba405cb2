#!/usr/bin/env python3
"""Lines of a folder's sources that ran, from what gcov wrote beside the objects: coverage_report.py FOLDER BUILD."""
import collections
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    folder, build = sys.argv[1], Path(sys.argv[2]).resolve()
    root = Path(__file__).resolve().parent.parent / folder
    counts = collections.defaultdict(collections.Counter)  # {file: {line: times it ran}}
    with tempfile.TemporaryDirectory() as scratch:
        # Tests too: what a header defines may run in their copy of it.
        notes = sorted(str(path) for path in build.rglob("*.gcno") if "CompilerId" not in path.name)
        subprocess.run(["gcov", "--json-format", *notes], cwd=scratch, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        for path in Path(scratch).glob("*.gcov.json.gz"):
            document = json.loads(gzip.decompress(path.read_bytes()))
            for file in document["files"]:
                source = Path(document["current_working_directory"], file["file"]).resolve()
                if source.parent == root:
                    for line in file["lines"]:
                        counts[source.name][line["line_number"]] += line["count"]
    lines = ran = 0
    for name, times in sorted(counts.items()):
        hit = sum(count > 0 for count in times.values())
        missed = sorted(line for line, count in times.items() if count == 0)
        lines, ran = lines + len(times), ran + hit
        print(f"{100 * hit / len(times):6.1f} %  {name:24} {'not: ' if missed else ''}{' '.join(map(str, missed))}")
    if not lines:
        sys.exit(f"coverage: nothing of {folder} was run below {build}")
    print(f"{100 * ran / lines:6.1f} %  {folder}, {ran} of {lines} lines")


if __name__ == "__main__":
    main()
