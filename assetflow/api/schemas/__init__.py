"""The schemas of requests and responses, which the OpenAPI document describes."""
