"""Deployments, with their consumers, automations and timers."""
