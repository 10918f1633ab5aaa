"""The REST API: Airflow's paths and shapes under `/api/v2`, assetflow's own under `/api/v1`."""
