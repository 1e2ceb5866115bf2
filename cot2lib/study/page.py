"""What the page of a chapter calls: runs as frames, figures and tables of them, text with numbers, and checks."""
# ruff: noqa: F401

from cot2lib.study.check import begin
from cot2lib.study.frame import absent, hours, read, tidy
from cot2lib.study.look import SETTINGS, Shown, curves, ends, finished, lines, panels, ticked
from cot2lib.study.printed import paper_value
from cot2lib.study.report import RECIPES, bullets, table, text
from cot2lib.study.show import ADDS, cells, counted, finding, gap_table, gaps, groups, mean_of, sentences
