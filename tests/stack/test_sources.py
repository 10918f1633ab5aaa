"""Which files of a project `assetflow dev` looks at."""

from __future__ import annotations

import os
from pathlib import Path

from assetflow.stack.flow_files import source_files


def test_python_and_the_list_of_deployments_but_no_environment_and_no_data(tmp_path: Path) -> None:
    for name in ("prefect.yaml", "a.py", "lib/b.py", "lake/x.csv", ".venv/c.py", "env/pyvenv.cfg", "env/d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = source_files(tmp_path)
    assert sorted(os.path.relpath(each, tmp_path) for each in found) == ["a.py", "lib/b.py", "prefect.yaml"]
    os.utime(tmp_path / "lib" / "b.py", ns=(1, 1))
    assert source_files(tmp_path) != found
