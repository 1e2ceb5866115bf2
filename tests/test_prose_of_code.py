"""Signatures with shapes, short functions, comments, constants: counted over the whole package.

`python tests/test_prose_of_code.py` prints the counts and what fails.
"""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent / "cot2lib"
SHAPED = {"Float", "Int", "Bool", "Shaped", "Num", "Real", "Integer", "Inexact"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def trees():
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}


def aliases(tree):
    """Names of a module that stand for types, with what they stand for."""
    assigns = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
    return {node.targets[0].id: node.value for node in assigns if "Tensor" in ast.dump(node.value)}


def tensors(annotation, known):
    """For every tensor that an annotation mentions, whether it has a shape."""
    if annotation is None:
        return []
    if isinstance(annotation, ast.Subscript) and getattr(annotation.value, "id", "") in SHAPED:
        return [True]
    name = getattr(annotation, "id", getattr(annotation, "attr", ""))
    if name == "Tensor":
        return [False]
    if name in known:
        return tensors(known[name], {other: value for other, value in known.items() if other != name})
    return [shaped for child in ast.iter_child_nodes(annotation) for shaped in tensors(child, known)]


def parameters(function):
    a = function.args
    named = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    return [arg for arg in named if arg.arg not in ("self", "cls")]


def signatures():
    """For every function that takes or returns tensors: its place, and whether every one of them has a shape."""
    found, everywhere = {}, {name: value for tree in trees().values() for name, value in aliases(tree).items()}
    for path, tree in trees().items():
        known = everywhere | aliases(tree)
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS):
                hints = [arg.annotation for arg in parameters(node)]
                seen = [shaped for hint in [*hints, node.returns] for shaped in tensors(hint, known)]
                if seen:
                    found[f"{path}:{node.lineno} {node.name}"] = all(seen) and None not in hints
    return found


def lengths():
    """Lines of every function, from `def` to its end, docstring included."""
    nodes = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    return [node.end_lineno - node.lineno + 1 for node in nodes]


def constants():
    """UPPER_CASE names that two or more modules define, with their values."""
    places = defaultdict(dict)
    for path, tree in trees().items():
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if isinstance(targets[0], ast.Name) and targets[0].id.isupper():
                places[targets[0].id][path] = ast.unparse(node.value)
    return {name: where for name, where in places.items() if len(where) > 1}
