"""Fresh environments: the wheel of this repository, installed as somebody else would."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_uv(*arguments: str) -> str:
    """Run the machine's uv, else the one that `scripts/setup` has installed; what it prints."""
    uv = shutil.which("uv") or str(ROOT / ".assetflow" / "tools" / "bin" / "uv")
    # The environment of these tests is not the one to change.
    clean = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    if Path("/etc/ssl/certs/ca-certificates.crt").exists():
        clean.setdefault("UV_SYSTEM_CERTS", "true")
    done = subprocess.run([uv, "--quiet", *arguments], cwd=ROOT, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout into a folder."""
    run_uv("build", "--wheel", "--out-dir", str(folder), str(ROOT))
    return next(folder.glob("*.whl"))


def write_locked(place: Path, *groups: str) -> None:
    """Write the versions of the lock file, with those of these dependency groups, as constraints."""
    chosen = [f"--group={group}" for group in groups] or ["--no-dev"]
    place.write_text(run_uv("export", "--frozen", "--no-emit-project", "--no-hashes", "--all-extras", *chosen))


def make_environment(folder: Path, *install: str, options: Sequence[str] = ()) -> Path:
    """Make a virtual environment of the Python of these tests and install into it; its `bin`."""
    run_uv("venv", "--clear", "--python", sys.executable, str(folder))
    run_uv("pip", "install", "--python", str(folder / "bin" / "python"), *options, *install)
    return folder / "bin"
