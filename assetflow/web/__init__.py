"""The pages, beside the API in one application."""

from assetflow.web.site import create_site

__all__ = ["create_site"]
