"""The pages, beside the API in one application."""

from assetflow.web.start import add_pages

__all__ = ["add_pages"]
