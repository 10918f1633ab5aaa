"""Pipelines that show what assetflow is for; each can be run, deployed and served."""
