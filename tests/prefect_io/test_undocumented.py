"""What is gone from Prefect's insides: only the feature that needs it fails, and says what to do."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import prefect.context
import prefect.flow_engine
import prefect.states
import prefect.tasks
import prefect.transactions
import prefect.utilities.importtools
import prefect.utilities.templating
import pytest

from assetflow.errors import UnsupportedPrefect
from assetflow.prefect_io import internals
from assetflow.stack import deploying, flow_files

GONE = """
    import prefect.context, prefect.flow_engine, prefect.runner, prefect.states, prefect.tasks, prefect.transactions
    import prefect.utilities.importtools, prefect.utilities.templating
    del prefect.context._deployment_id, prefect.flow_engine.run_flow, prefect.states.is_state_iterable
    del prefect.tasks._generate_task_key, prefect.transactions.get_transaction
    del prefect.utilities.importtools.import_object, prefect.utilities.templating.apply_values
    from assetflow import Asset, flow
    from assetflow.prefect_io import internals
    from assetflow.stack import deploying
    from assetflow.stack import flow_files
    import assetflow.testing.background
    @flow(schedule=Asset("s3://shop/orders"))
    def report(): ...
    print(report.name)
"""


@pytest.mark.parametrize(
    ("owner", "name", "use", "feature"),
    [
        (prefect.tasks, "_generate_task_key", lambda: internals.task_key_of(print), "A task with outlets"),
        (prefect.states, "is_state_iterable", lambda: internals.ends_completed([]), "Recording an update"),
        (prefect.transactions, "get_transaction", lambda: internals.in_user_transaction(), "Recording an update"),
        (prefect.context, "_deployment_id", lambda: internals.deployment_id(), "a remote worker"),
        (prefect.utilities.templating, "apply_values", lambda: flow_files._filled_in({}), "A variable in prefect.yaml"),
        (prefect.utilities.importtools, "import_object", lambda: deploying.load("a.py:b"), "A check of flows"),
    ],
)
def test_only_the_feature_that_needs_it_fails(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, use: Callable[[], object], feature: str
) -> None:
    monkeypatch.delattr(owner, name)
    with pytest.raises(UnsupportedPrefect, match=f"{feature}.*does not work with Prefect 3.*{name}") as raised:
        use()
    assert "pip install 'prefect>=" in raised.value.fix


@pytest.mark.prefect
def test_flows_are_imported_without_what_is_undocumented() -> None:
    program = [sys.executable, "-c", textwrap.dedent(GONE)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "report\n"), done.stderr
