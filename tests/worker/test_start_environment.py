"""What needs an ordinary process."""

from __future__ import annotations

import pytest

from assetflow.worker.child import differs

OWN = {"PATH": "/bin", "LANG": "C.UTF-8", "PYTHONPATH": "/a"}


@pytest.mark.parametrize(
    "name",
    [
        "PYTHONPATH",
        "PYTHONHASHSEED",
        "LD_LIBRARY_PATH",
        "MALLOC_ARENA_MAX",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "ARROW_DEFAULT_MEMORY_POOL",
        "LANG",
        "LC_ALL",
        "SSL_CERT_FILE",
    ],
)
def test_a_variable_that_is_read_at_a_start_needs_a_process_of_its_own(name: str) -> None:
    assert differs(OWN | {name: "other"}, OWN)


@pytest.mark.parametrize("name", ["PATH", "TZ", "PREFECT_API_URL", "ASSETFLOW_HOME", "HOME"])
def test_other_variables_are_set_in_the_child(name: str) -> None:
    assert not differs(OWN | {name: "other"}, OWN)


def test_a_variable_that_is_gone_differs_too() -> None:
    assert differs({"PATH": "/bin", "LANG": "C.UTF-8"}, OWN)
