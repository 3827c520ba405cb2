#!/usr/bin/env python3
"""Every header compiles alone and can be included twice: a part of the headers, or all with TACHO_TEST_SCALE=1.

    headers_test.py COMPILER [FOLDER...]   the headers of these folders, without them of the whole product

The headers of BPF programs are compiled with the programs.
"""
import concurrent.futures
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))
from programs import part_of

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["format", "cli", "unwind", "symbolize", "sandbox", "bpf", "record", "report"]
FOR_BPF_PROGRAMS = ("bpf/include/", "bpf/programs/")
HOST_SIDE = ("bpf/programs/stack_maps.h",)  # what both sides read


def headers(folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.h")):
            name = str(path.relative_to(ROOT))
            if not name.startswith(FOR_BPF_PROGRAMS) or name in HOST_SIDE:
                yield name


def complaints(compiler, name):
    # Twice: so a header without #pragma once is found as well.
    text = f'#include "{name}"\n#include "{name}"\n'
    command = [compiler, "-std=gnu++20", f"-I{ROOT}", "-fsyntax-only", "-w", "-x", "c++", "-"]
    return subprocess.run(command, input=text, text=True, stderr=subprocess.PIPE).stderr


def main():
    compiler, folders = sys.argv[1], sys.argv[2:]
    names = list(headers(folders or FOLDERS))
    assert names, "no headers were found"
    if not folders:
        names = part_of(names, int(time.time()) // 86400)  # another part each day
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        found = [(name, text) for name, text in zip(names, threads.map(lambda name: complaints(compiler, name), names)) if text]
    for name, text in found:
        print(f"{name} does not compile alone:\n{text}")
    print(f"{len(names)} headers, {len(found)} do not compile alone")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
