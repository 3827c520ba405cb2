#!/usr/bin/env python3
"""Every header of a folder compiles alone: each is the only text of a translation unit.

    headers_test.py COMPILER FOLDER...   whose headers; a BPF program's are compiled with the programs
"""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
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
    names = list(headers(folders))
    assert names, "no headers were found"
    found = [(name, text) for name in names if (text := complaints(compiler, name))]
    for name, text in found:
        print(f"{name} does not compile alone:\n{text}")
    print(f"{len(names)} headers, {len(found)} do not compile alone")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
