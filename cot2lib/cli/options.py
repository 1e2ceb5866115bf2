"""Pieces that commands share: how they are added, common options, checks of counts."""

import argparse
from collections.abc import Callable, Sequence

from cot2lib.errors import SpecError

FAILED = 2


def command(commands, name: str, text: str, function, again: str = "begins anew") -> argparse.ArgumentParser:
    """A command, and what it does when it is given again after an interrupt."""
    parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(command=function, again=again)
    return parser


def profile_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", default="quick", help="quick or paper (default: quick)")


def check_choice(options: argparse.Namespace, name: str, choices: Sequence[str]) -> None:
    """Check that an option is one of some words. Raises SpecError if it is none of them."""
    given = getattr(options, name)
    if given not in choices:
        raise SpecError(f"--{name} {given}: choose one of {', '.join(choices)}.")


def check_counts(options: argparse.Namespace, check: Callable[[str, int], None], *names: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            check(f"--{name}", getattr(options, name))
