"""ClickHouse's engine: the npm package chdb, where TACHO_CHDB says (a folder node_modules/chdb), behind clickhouse_bridge.js."""
import os
import shutil
import subprocess
from pathlib import Path

BRIDGE = Path(__file__).with_name("clickhouse_bridge.js")


def why_absent():
    if shutil.which("node") is None:
        return "needs node (Debian: nodejs)"
    found = os.environ.get("TACHO_CHDB", "")
    return "" if Path(found, "package.json").is_file() and found else "ClickHouse's engine is not here: npm install chdb, and name node_modules/chdb in TACHO_CHDB"


def start(folder, dies_at=None):
    """The process, and the address of its database."""
    words = ["node", BRIDGE, folder] + ([str(dies_at)] if dies_at else [])
    bridge = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    port = bridge.stdout.readline().strip()
    bridge.stdout.close()
    return bridge, f"http://127.0.0.1:{port}/default"
