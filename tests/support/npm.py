"""Programs and files of npm packages that tests use, where they are installed: `npm install NAME...` in some folder, whose
node_modules the environment variable TACHO_NODE_MODULES names. script/clients does both."""
import os
import unittest
from pathlib import Path

MODULES = Path(os.environ.get("TACHO_NODE_MODULES", "/nonexistent"))


def needs(*packages):
    """Skips a test unless all of these packages are installed."""
    missing = [name for name in packages if not (MODULES / name).is_dir()]
    return unittest.skipIf(missing, f"needs {' and '.join(missing)} of npm in the folder TACHO_NODE_MODULES")
