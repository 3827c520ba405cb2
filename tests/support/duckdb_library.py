"""DuckDB's shared library, which no package of Debian has: where TACHO_DUCKDB says, or where the loader finds it."""
import ctypes
import os


def why_absent():
    """What is missing for tests that need it; empty: nothing."""
    name = os.environ.get("TACHO_DUCKDB") or "libduckdb.so"
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return f"DuckDB's shared library is not here ({error}); npm pack @duckdb/node-bindings-linux-x64 brings it, TACHO_DUCKDB names it"
    return ""
