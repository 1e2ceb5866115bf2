"""Pieces that commands share: how they are added, and common options."""

import argparse
from typing import NoReturn

from cot2lib.errors import SpecError

FAILED = 2


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, like all others."""

    def error(self, message: str) -> NoReturn:
        raise SpecError(f"{message}.")


def command(commands, name: str, text: str, function, again: str = "begins anew") -> argparse.ArgumentParser:
    """A command, and what it does when it is given again after an interrupt."""
    parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(command=function, again=again)
    return parser


def profile_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", default="quick", help="quick or paper (default: quick)")


def device_option(parser: argparse.ArgumentParser) -> None:
    devices = ("auto", "cpu", "cuda")
    parser.add_argument("--device", default="auto", choices=devices, help="(default: auto, CUDA where there is one)")


def count(text: str) -> int:
    """An option's whole number of at least 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: need at least one")
    return number
