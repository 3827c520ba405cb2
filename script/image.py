#!/usr/bin/env python3
"""Makes an image for containers (docker-archive, which docker, podman and skopeo load) of a build: the programs, the shared
libraries that they load, and terminals' descriptions. For script/package --image.

  image.py --version VERSION --epoch SECONDS --build FOLDER OUTPUT.tar
"""
import argparse
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile
import tempfile
from datetime import datetime, timezone
from pathlib import Path

PROGRAMS = ["usr/bin/tacho", "usr/bin/tacho-record", "usr/bin/tacho-report"]
LEFT_OUT = {"doc", "cmake", "man", "bash-completion", "fish", "zsh"}  # folders of what the programs do not read
TERMINALS = ["xterm", "xterm-256color", "screen", "screen-256color", "tmux", "tmux-256color", "linux"]


def libraries_of(program):
    """{path in the image: file here} of what the dynamic linker loads for a program, and of the linker itself."""
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return {path: Path(path).resolve() for path in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", text, re.MULTILINE)}


def terminal_files():
    folders = [Path(folder) for folder in ("/lib/terminfo", "/usr/share/terminfo", "/etc/terminfo")]
    found = [(folder / name[0] / name) for name in TERMINALS for folder in folders]
    return {str(path): path for path in found if path.exists()}


def image_files(root):
    files = {f"/{path.relative_to(root)}": path for path in sorted(root.rglob("*")) if path.is_file()
             if not LEFT_OUT & set(path.relative_to(root).parts) and path.suffix not in (".a", ".h")}
    for program in PROGRAMS:
        files.update(libraries_of(root / program))
    files.update(terminal_files())
    return files


def add(archive, name, data, epoch, mode=0o644, kind=tarfile.REGTYPE):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime, entry.type = len(data), mode, epoch, kind
    archive.addfile(entry, io.BytesIO(data))


def layer_of(files, epoch):
    """The bytes of a tar file, the same for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        folders = {str(parent) for name in files for parent in Path(name).parents} | {"/tmp", "/proc", "/sys", "/work"}
        for name in sorted(folders - {"/"}):
            add(archive, name[1:], b"", epoch, 0o1777 if name == "/tmp" else 0o755, tarfile.DIRTYPE)
        for name, path in sorted(files.items()):
            add(archive, name[1:], path.read_bytes(), epoch, 0o755 if os.access(path, os.X_OK) else 0o644)
    return out.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    parser.add_argument("--epoch", type=int, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("output", type=Path)
    words = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cmake", "--install", words.build, "--prefix", "/usr", "--strip"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DESTDIR": folder})
        layer = layer_of(image_files(Path(folder)), words.epoch)
    digest = hashlib.sha256(layer).hexdigest()
    made = datetime.fromtimestamp(words.epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = json.dumps({
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()], "os": "linux", "created": made,
        "config": {"Entrypoint": ["/usr/bin/tacho"], "Cmd": ["--help"], "WorkingDir": "/work",
                   "Env": ["PATH=/usr/bin", "LANG=C.UTF-8"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": made, "created_by": "script/package --image"}]}, sort_keys=True).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [f"tacho:{words.version}"], "Layers": [f"{digest}/layer.tar"]}])
    with tarfile.open(words.output, "w", format=tarfile.PAX_FORMAT) as archive:
        add(archive, f"{digest}/layer.tar", layer, words.epoch)
        add(archive, config_name, config, words.epoch)
        add(archive, "manifest.json", manifest.encode(), words.epoch)


if __name__ == "__main__":
    main()
