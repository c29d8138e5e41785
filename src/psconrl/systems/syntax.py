"""The syntax of expressions: that of Python, with percentages.

After a number ``%`` means percent: ``5%`` is 0.05, and ``10% + 5%`` is 0.15. After anything else it takes the remainder
of a division: ``hour % 24``, ``(2 * hour) % 24``.

>>> written(parsed("lost <= 10% + 5%"))
'lost <= 0.1 + 0.05'
>>> float(exact(parsed("10% + 5%")))
0.15
"""

import ast
import io
import keyword
import tokenize
from decimal import Decimal, DecimalException
from fractions import Fraction

from psconrl.base.escaping import quoted
from psconrl.errors import ModelError

DEEPEST_TREE = 100  # nesting levels of a syntax tree: a sum has one for every term
LARGEST_POWER = 64  # of numbers that are calculated exactly,
MOST_POWER_BITS = 100_000  # and the size of such a power: the range of doubles, to this power
BEFORE_OPERANDS = ("not", "True", "False", "None", "lambda", "await")  # keywords with which an operand can begin


def parsed(text: str) -> ast.expr:
    """Return the syntax tree of an expression; a ``SyntaxError`` or the like if it is none."""
    stripped = text.strip()
    tree = ast.parse(_without_percentages(stripped) if "%" in stripped else stripped, mode="eval").body
    level: list[ast.AST] = [tree]
    depth = 0
    while level:
        level, depth = [part for one in level for part in ast.iter_child_nodes(one)], depth + 1
        if depth > DEEPEST_TREE:
            raise ModelError(f"{quoted(stripped[:60])}... has more than {DEEPEST_TREE} terms or nesting levels")
    return tree


def written(tree: ast.AST) -> str:
    """Return the text of a syntax tree, which ``parsed`` reads as the same."""
    text = ast.unparse(tree)
    try:
        return ast.unparse(_Remainders().visit(ast.parse(text, mode="eval"))) if "%" in text else text
    except SyntaxError:  # a part of an expression that is none, such as *x
        return text


def exact(tree: ast.AST) -> Fraction | None:
    """Return the value of numbers that are added, subtracted, multiplied and divided; None for anything else.

    Decimals are those that are written: 1 - 0.9 is 0.1.
    """
    match tree:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as number):
            return Fraction(repr(number)) if abs(number) < float("inf") else None
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
            value = exact(operand)
            return None if value is None else -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            a, b = exact(left), exact(right)
            return None if a is None or b is None else _calculated(a, op, b)
    return None


def _calculated(a: Fraction, op: ast.operator, b: Fraction) -> Fraction | None:
    match op:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.Div() if b:
            return a / b
        case ast.Pow() if b.denominator == 1 and abs(b) <= LARGEST_POWER and (a or b >= 0):
            bits = max(a.numerator.bit_length(), a.denominator.bit_length())
            return Fraction(a ** int(b)) if bits * abs(b) <= MOST_POWER_BITS else None
    return None


class _Remainders(ast.NodeTransformer):
    """Put parentheses around the left side of a remainder, which may end in a number."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.BinOp:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and not isinstance(node.left, ast.Name | ast.Call):
            node.left = ast.Name(id=f"({ast.unparse(node.left)})")
        return node


def _without_percentages(text: str) -> str:
    """Return a text with numbers in place of percentages."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return text  # the parser says what is wrong
    begins = [0]
    for line in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    made, done = "", 0
    for number, sign, following in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if number.type != tokenize.NUMBER or sign.string != "%":
            continue
        if _begins_operand(following):
            raise ModelError(
                f"in {quoted(text)}: after a number, as in '{number.string} %', % means percent; for a remainder write "
                f"({number.string}) % {following.string}"
            )
        first, last = (begins[row - 1] + column for row, column in (number.start, sign.end))
        made, done = made + text[done:first] + _hundredth(number.string), last
    return made + text[done:]


def _begins_operand(token: tokenize.TokenInfo) -> bool:
    if token.type == tokenize.NAME:
        return not keyword.iskeyword(token.string) or token.string in BEFORE_OPERANDS
    return token.type in (tokenize.NUMBER, tokenize.STRING) or (token.string in "([{" and bool(token.string))


def _hundredth(number: str) -> str:
    try:
        return str(Decimal(number) / 100)
    except DecimalException:
        raise ModelError(f"'{number}%' is no percentage") from None
