"""Loads the Python scripts of script/, for their tests."""
import importlib.machinery
import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def loaded_script(name):
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "script" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
