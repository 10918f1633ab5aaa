"""The web pages, served beside the API by one application."""

from assetflow.web.site import create_site

__all__ = ["create_site"]
