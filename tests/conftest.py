"""For every test in this directory: the marks of the parts that `make test` leaves to a target of their own."""
import importlib.machinery
import importlib.util
import os
import sys


def parts():
    """Of tools/run-tests, which has no .py in its name."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/run-tests")
    loader = importlib.machinery.SourceFileLoader("run_tests", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
    keep, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = keep
    return module.PARTS


def pytest_configure(config):
    for part in parts():
        config.addinivalue_line("markers", f"{part}: run by `make test-{part}`, not by `make test`")
