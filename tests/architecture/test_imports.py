"""The import contracts of pyproject.toml hold."""

import os

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.architecture.sources import ROOT


def test_the_import_contracts_hold(capsys):
    os.chdir(ROOT)
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out
