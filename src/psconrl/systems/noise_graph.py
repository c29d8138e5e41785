"""What depends on which noise: expressions, cut into parts that depend on less than the whole.

The value of ``min(max(shelf - demand, 0) + come, 8)`` depends on the demand only through ``max(shelf - demand, 0)``,
which has few values. Such parts are *nodes* of a graph; ``enumeration`` merges outcomes with the same values of nodes.
A Python function is one node, which depends on all variables that it takes.
"""

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psconrl.systems.expressions import Expression, evaluated
from psconrl.systems.functions import Rule
from psconrl.systems.outcome_rows import Columns, Distribution

Names = frozenset[str]
Convert = Callable[[NDArray[Any]], Any]


class Node(NamedTuple):
    """A part of the graph: columns that follow from other columns."""

    outputs: tuple[str, ...]
    inputs: Names
    values: Callable[[Columns, int], Columns]
    factors: Names  # on which it depends, directly or through other nodes
    given: Names  # variables of the pair on which it depends, also directly or not


class Graph:
    """Definitions of columns by others; ``factor_of``: the factor of every variable that is random."""

    def __init__(self, pair_names: Iterable[str], factor_of: Mapping[str, str]) -> None:
        self.pair_names = frozenset(pair_names)
        self.factor_of = dict(factor_of)
        self._nodes: dict[str, Node] = {}
        #: Distributions of nodes that are the same in all states and with all actions.
        self.constants: dict[tuple[str, ...], Distribution] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._nodes or name in self.factor_of or name in self.pair_names

    def node(self, name: str) -> Node | None:
        """Return the node that has a column; None if the column is a variable."""
        return self._nodes.get(name)

    def factors(self, names: Iterable[str]) -> Names:
        """Return the factors on which some columns depend."""
        found: set[str] = set()
        for name in names:
            if name in self._nodes:
                found |= self._nodes[name].factors
            elif name in self.factor_of:
                found.add(self.factor_of[name])
        return frozenset(found)

    def given(self, names: Iterable[str]) -> Names:
        """Return the variables of the pair on which some columns depend."""
        found: set[str] = set()
        for name in names:
            if name in self._nodes:
                found |= self._nodes[name].given
            elif name in self.pair_names:
                found.add(name)
        return frozenset(found)

    def add(self, outputs: tuple[str, ...], inputs: Names, values: Callable[[Columns, int], Columns]) -> None:
        """Add columns that follow from others, all of which are known by now."""
        node = Node(outputs, inputs, values, self.factors(inputs), self.given(inputs))
        self._nodes |= dict.fromkeys(outputs, node)

    def define(self, name: str, rule: Rule, convert: Convert | None = None) -> None:
        """Add a column by a rule. ``convert``: what is applied to the values, such as a check."""
        if rule.expression is not None:
            self.express(name, rule.expression, convert)
            return

        def values(columns: Columns, size: int) -> Columns:
            rule.try_arrays(columns)
            found = rule(columns, size)
            return {name: found if convert is None else convert(found)}

        self.add((name,), rule.names, values)

    def express(self, name: str, expression: Expression, convert: Convert | None = None) -> None:
        """Add a column by an expression."""
        self._express(name, expression.tree, convert)

    def _express(self, name: str, tree: ast.expr, convert: Convert | None = None) -> None:
        """Add a column by an expression, whose parts become nodes of their own where they depend on less noise."""
        inputs: set[str] = set()
        names = _names(tree)
        kept = self._cut(tree, (self.factors(names), self.given(names)), inputs)

        def values(columns: Columns, size: int) -> Columns:
            found = np.broadcast_to(np.asarray(evaluated(kept, columns)), (size,))
            return {name: found if convert is None else convert(found)}

        self.add((name,), frozenset(inputs), values)

    def _cut(self, tree: ast.expr, own: tuple[Names, Names], inputs: set[str]) -> ast.expr:
        """Return an expression with names of nodes in place of its parts; ``own``: on what the whole depends."""
        if isinstance(tree, ast.Name):
            inputs.add(tree.id)
            return tree
        if isinstance(tree, ast.Constant):
            return tree
        names = _names(tree)
        factors = self.factors(names)
        if factors != own[0] or (len(factors) > 1 and self.given(names) != own[1]):
            text = f"({ast.unparse(tree)})"
            if text not in self._nodes:
                self._express(text, tree)
            inputs.add(text)
            return ast.Name(id=text)
        fields = dict(ast.iter_fields(tree))
        for key, value in fields.items():
            if isinstance(value, ast.expr) and key != "func":
                fields[key] = self._cut(value, own, inputs)
            elif isinstance(value, list):
                fields[key] = [self._cut(x, own, inputs) if isinstance(x, ast.expr) else x for x in value]
        return type(tree)(**fields)

    def needed(self, targets: Iterable[str]) -> list[Node]:
        """Return the nodes on which some columns depend, each after those on which it depends itself."""
        found: dict[tuple[str, ...], Node] = {}

        def visit(name: str) -> None:
            node = self._nodes.get(name)
            if node is not None and node.outputs not in found:
                for one in sorted(node.inputs):
                    visit(one)
                found[node.outputs] = node

        for name in targets:
            visit(name)
        return list(found.values())


def _names(tree: ast.expr) -> set[str]:
    """Return the names of the variables in an expression."""
    if isinstance(tree, ast.Name):
        return {tree.id}
    found: set[str] = set()
    for key, value in ast.iter_fields(tree):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.expr) and key != "func":
                found |= _names(part)
    return found
