"""This book: what it runs, measures, judges and draws. The core learns here which command trains a chapter's runs."""

import shlex

from cot2lib.runs import lookup
from cot2lib.specs import Run


def command(run: Run) -> str | None:
    """The shell command that trains a run, if a chapter stands on it."""
    from cot2lib.specs.profiles import PROFILES
    from cot2lib.study import sweeps

    for chapter in sweeps.CHAPTERS:
        for profile in PROFILES:
            if run in (asked := sweeps.of_chapter(chapter, profile)):
                told, left = [], [one.columns() for one in asked]
                for name, value in run.columns().items():  # what leaves fewer runs, as `sweeps.where` does
                    alike = [row for row in left if str(row.get(name)) == str(value)]
                    told, left = [*told, f"{name}={value}"] if len(alike) < len(left) else told, alike
                return f"cot2 run {chapter} --profile {profile}" + (f" --where {shlex.join(told)}" if told else "")
    return None


lookup.COMMANDS.append(command)
