"""Spark inside a Prefect flow: a shared session, `spark_task`, safe publishing and measuring.

Importing this package does not import PySpark; the first session does.
"""
