"""Runs: train what is missing, look up what is known."""

from cot2lib.runs.run import *  # noqa: F403
