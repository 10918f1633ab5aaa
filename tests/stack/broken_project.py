"""A project with one of each fault that `assetflow lint` finds, each in a file of its own."""

import re
from pathlib import Path

_IMPORTS = """\
from datetime import timedelta

from assetflow import *
from assetflow.partitions import *
from assetflow.timetables import *

orders, customers = Asset("s3://shop/orders"), Asset("s3://shop/customers")
"""

FAULTS = {
    "AF001": "import nowhere_to_be_found\n",
    "AF002": '@flow(schedule=Asset("s3://shop/other", name="stock"))\ndef refused(): ...\n',
    "AF003": "@flow(schedule=Eager(), produces=[Asset('s3://shop/kept')])\ndef reads_nothing(): ...\n",
    "AF004": '@flow(schedule=Asset("s3://shop/order"))\ndef typing_error(): ...\n',
    "AF005": "@flow(schedule=Asset('s3://shop/circle'), produces=[Asset('s3://shop/circle')])\ndef circle(): ...\n",
    "AF006": "@flow(schedule=orders & AssetAny())\ndef never(): ...\n",
    "AF007": "@flow(schedule=orders | (orders & customers))\ndef useless_branch(): ...\n",
    "AF008": "@flow(produces=[customers])\ndef second_maker(): ...\n",
    "AF009": """\
@task
def load(spark):
    return spark.read.format("json").load("s3://shop/undeclared")

@flow(schedule=orders)
def undeclared():
    load(None)
""",
    "AF010": """\
@flow(schedule=PartitionedAssetTimetable(
    assets=orders & customers,
    partition_mapper_config={orders: StartOfDayMapper(), customers: StartOfMonthMapper()},
))
def never_meet(): ...
""",
    "AF011": """\
of_days = StartOfMonthMapper(input_format="%Y-%m-%d")
@flow(schedule=PartitionedAssetTimetable(assets=customers, default_partition_mapper=of_days))
def other_format(): ...
""",
    "AF012": '@flow(schedule="0 6 * * *")\ndef no_zone(): ...\n',
    "AF013": "@flow(produces=[AssetAlias('unused')])\ndef unused_alias(): ...\n",
    "AF014": "@flow(schedule=orders, debounce=timedelta(minutes=5))\ndef no_end(): ...\n",
}
_MAKER = "@flow(produces=[orders, customers, Asset('s3://shop/stock', name='stock')])\ndef maker(): ...\n"
_CANCELLING = "@flow(schedule=orders)\ndef cancelling(): ...\n"
_STOCK = "@flow(schedule=Asset('s3://shop/stock', name='stock'))\ndef a_first_user_of_stock(): ...\n"


def write_broken_project(folder: Path) -> None:
    """Write the project: `flows/maker.py`, and `flows/af001.py` and so on, with the faults.

    Of `flows/cancelling.py`, the deployment is at fault.
    """
    (folder / "flows").mkdir()
    files = {"maker": _MAKER + _STOCK, **{code.lower(): text for code, text in FAULTS.items()}}
    deployments = ""
    for name, text in {**files, "cancelling": _CANCELLING}.items():
        (folder / "flows" / f"{name}.py").write_text(f"{_IMPORTS}\n{text}", encoding="utf-8")
        for function in re.findall(r"@flow.*?^def (\w+)", text, re.DOTALL | re.MULTILINE) or ["missing"]:
            limit = ", concurrency_limit: {limit: 1, collision_strategy: CANCEL_NEW}" if name == "cancelling" else ""
            deployments += f"  - {{name: shop, entrypoint: 'flows/{name}.py:{function}'{limit}}}\n"
    (folder / "prefect.yaml").write_text(f"deployments:\n{deployments}", encoding="utf-8")
