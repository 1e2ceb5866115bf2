"""Shapes in signatures, functions of at most sixty lines, and names in prose that exist."""

import ast
import pkgutil
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROOT = REPOSITORY / "cot2lib"
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
TREES = {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
LONGEST = 60  # lines of a function
SHAPED = {"Float", "Int", "Bool", "Shaped", "Num", "Real", "Integer", "Inexact"}


def aliases(tree):
    """Names of a module that stand for types with tensors, and those types."""
    assigns = [node for node in tree.body if isinstance(node, ast.Assign) and "Tensor" in ast.dump(node.value)]
    return {node.targets[0].id: node.value for node in assigns if isinstance(node.targets[0], ast.Name)}


def tensors(hint, known):
    """For every tensor in a type, whether it has a shape."""
    name = getattr(hint, "id", getattr(hint, "attr", None))
    if name == "Tensor" or getattr(getattr(hint, "value", None), "id", None) in SHAPED:
        return [name != "Tensor"]
    if name in known:
        return tensors(known[name], {other: kind for other, kind in known.items() if other != name})
    return [shaped for part in ast.iter_child_nodes(hint) for shaped in tensors(part, known)] if hint else []


def functions():
    """Module, tree and node of every function."""
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield path, tree, node


def signatures():
    """For every function that takes or returns tensors, whether all of them have a shape.

    An unannotated parameter counts as a tensor without a shape where the module imports `Tensor`.
    """
    found, everywhere = {}, {name: kind for tree in TREES.values() for name, kind in aliases(tree).items()}
    for path, tree, node in functions():
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        hints = [arg.annotation for arg in given if arg.arg not in ("self", "cls")]
        seen = [shaped for hint in [*hints, node.returns] for shaped in tensors(hint, everywhere | aliases(tree))]
        if seen or (None in hints and "import Tensor" in ast.unparse(tree)):
            found[f"{path}:{node.lineno} {node.name}"] = all(seen) and None not in hints
    return found


def test_tensors_have_shapes_in_signatures():
    found = signatures()
    without = [place for place, shaped in found.items() if not shaped]
    assert len(without) <= 0.02 * len(found), without


def too_long(trees, longest):
    """`path name` of every function with more lines."""
    named = [(path, node) for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    return {f"{path} {node.name}" for path, node in named if node.end_lineno - node.lineno + 1 > longest}


def test_no_function_is_long():
    assert not too_long(TREES, LONGEST)


def test_a_long_function_is_seen():
    tree = ast.parse("def f():\n    x = 1\n    return x\n")
    assert too_long({"a.py": tree}, 2) == {"a.py f"} and not too_long({"a.py": tree}, 3)


@pytest.mark.parametrize(
    "text, has", [("Tensor", [False]), ("list[torch.Tensor]", [False]), ("tuple[P, int]", [True])]
)
def test_bare_tensors_are_seen(text, has):
    known = {"P": ast.parse("Float[Tensor, 'a b']", mode="eval").body}
    assert tensors(ast.parse(text, mode="eval").body, known) == has


def test_names_in_prose_exist():
    """Every dotted name of the package in a docstring, a page or a chapter."""
    files = [*ROOT.rglob("*.py"), *REPOSITORY.glob("book/*.md"), *REPOSITORY.glob("notebooks/*.ipynb")]
    named = {name for path in files for name in re.findall(r"`(cot2lib(?:\.\w+)+)(?:\(\))?`", path.read_text())}
    assert len(named) > 30
    for name in sorted(named):
        pkgutil.resolve_name(name)
