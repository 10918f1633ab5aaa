"""`assetflow spark start|stop`: start or stop the project's local Spark Connect server."""

from __future__ import annotations

import sys

import cyclopts

app = cyclopts.App(name="spark", help="Spark's own local Connect server, shared by this project's flow runs.")


@app.command
def start() -> None:
    """Start the local Connect server of this ASSETFLOW_HOME, if none is running. It runs until it is stopped."""
    from assetflow.spark.session import start_local_server

    start_local_server()
    sys.stdout.write("ready\n")


@app.command
def stop() -> None:
    """Stop the local Connect server of this ASSETFLOW_HOME, if one is running."""
    from assetflow.spark.session import stop_local_server

    sys.stdout.write("stopped\n" if stop_local_server() else "no server runs\n")
