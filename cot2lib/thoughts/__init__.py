"""Thought rules: how the distribution of a step becomes the next input."""

from cot2lib.thoughts.rules import *  # noqa: F403
