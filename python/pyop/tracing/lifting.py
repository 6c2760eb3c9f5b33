"""Lift the control flow of a function: its loops and conditions become calls, which run it or record it.

Run on plain values, the lifted function does what the original does, statement by statement. Recorded, a loop goes to
its head on every way through its body, and of a condition that is symbolic each arm is recorded once::

    while test:                        exits = LOOP()
        body                           for number in exits:
        if a:                              if exits.ends(test): continue
            break                          left = 0
        if b:                              body
            return y                       for arm in ARMS(a):
        rest                                   if arm: left = 1
                                               else:
                                                   for arm in ARMS(b):
                                                       if arm: left = 3
                                                       else: rest
                                           exits.leave(left)
                                       for arm in ARMS(exits.left_by(3)):
                                           if arm: return y

So ``break``, ``continue``, ``return`` and ``raise`` in a loop are numbers of exits, done behind it; what follows a
condition that may leave stands in the arm that does not, or behind a condition that asks for the number.
"""

from __future__ import annotations

import ast
from typing import Any

from .comprehensions import close_comprehensions
from .conditions import ARMS, IS_NONE, NOT, TRUTH, Conditions, is_concrete
from .syntax import children, walk

__all__ = ["ARMS", "EQUAL", "IN", "IS_NONE", "ITEM", "LOOP", "NOT", "TRUTH", "lift"]

LOOP = "__pyop_loop__"
"""The builtin of lifted code that makes the exits of a loop (`pyop.loops.leaving`)."""

ITEM = "__pyop_item__"
"""The builtin of lifted code that looks something up by an index (`pyop.loops.items`)."""

IN, EQUAL = "__pyop_in__", "__pyop_equal__"
"""The builtins of lifted code that look for something in a container, and compare tuples (`pyop.loops.membership`)."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.While)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_HELD = (ast.Try, getattr(ast, "TryStar", ast.Try), ast.Match)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_YIELDS = (ast.Yield, ast.YieldFrom, ast.Await)
_ON, _OFF, _EITHER = 1, 2, 3  # goes on behind, leaves, or one of them
_CONTINUE, _BREAK = -1, 1
_FIRST = 1  # number of an exit that something is done for behind the loop
_DEEPEST = 6  # arms in arms that what follows is put into


class _Items(ast.NodeTransformer):
    """Write ``table[k]``, ``k in table`` and ``a == (b, c)`` as calls, which do so with numbers that are not known."""

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        index = node.slice
        known = isinstance(index, (ast.Constant, ast.Slice, ast.Tuple, ast.Starred))
        known = known or (isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant))
        if known or not isinstance(node.ctx, ast.Load):
            return node
        return _place(ast.Call(ast.Name(ITEM, ast.Load()), [node.value, index], []), node, node.value, index)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        op, left, right = node.ops[0], node.left, node.comparators[0]
        if len(node.ops) > 1:
            return node
        if isinstance(op, (ast.In, ast.NotIn)):
            made = ast.Call(ast.Name(IN, ast.Load()), [left, _container(right)], [])
        elif isinstance(op, (ast.Eq, ast.NotEq)) and (isinstance(left, ast.Tuple) or isinstance(right, ast.Tuple)):
            made = ast.Call(ast.Name(EQUAL, ast.Load()), [left, right], [])
        else:
            return node
        made = _place(made, node, left, right)
        negated = isinstance(op, (ast.NotIn, ast.NotEq))
        return _place(ast.UnaryOp(ast.Not(), made), node, made) if negated else made

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node


def _container(expr: ast.expr) -> ast.expr:
    """Return the operand of ``in`` as the compiler would have it: a set of constants is one."""
    constants = [x.value for x in expr.elts if isinstance(x, ast.Constant)] if isinstance(expr, ast.Set) else []
    if not isinstance(expr, ast.Set) or len(constants) < len(expr.elts):
        return expr
    known: Any = frozenset(constants)
    return ast.copy_location(ast.Constant(known), expr)


def lift(function: ast.FunctionDef) -> None:
    """Lift a function in place, and the functions in it."""
    function.body = [_Items().visit(statement) for statement in function.body]
    _lift(function, Conditions())


def _lift(function: ast.FunctionDef, conditions: Conditions) -> None:
    close_comprehensions(function)
    for part in _statements(function):
        if isinstance(part, ast.FunctionDef):
            _lift(part, conditions)
    if not any(isinstance(part, _YIELDS) for part in _own(function)):
        _Function(conditions).lift(function)


class _Exits:
    """Hold the exits of a loop, or of the function (`loop` None), whose statements are written."""

    def __init__(self, conditions: Conditions, loop: str | None) -> None:
        self.loop = loop
        self.left = conditions.name("k")  # the variable that holds the number of the exit taken
        self.asked = False  # a condition reads it
        self.behind: list[tuple[int, ast.stmt]] = []  # what is to be done behind the loop
        self.broken = False


class _Function:
    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self.result = ""  # the variable that holds what the function returns
        self.returns = False  # it is set somewhere
        self.exits: list[_Exits] = []
        self.numbers = _FIRST
        self.depth = 0

    def lift(self, function: ast.FunctionDef) -> None:
        self.exits = [_Exits(self.conditions, None)]
        self.result = self.conditions.name("r")
        body = function.body
        inner = any(isinstance(part, ast.Return) and part not in body for part in _statements(function))
        if inner and _falls(body) & _ON:
            end = ast.Return(ast.Constant(None))
            body = [*body, _place(ast.copy_location(end, body[-1]), body[-1])]
        made = self.block(body)
        own = self.exits[0]
        start = [_number(own.left, 0, function.body[0])] if own.asked else []
        last = [_place(ast.Return(ast.Name(self.result, ast.Load())), body[-1])] if self.returns else []
        function.body = [*start, *made, *last]

    # --- statements

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Lift statements that follow each other."""
        made: list[ast.stmt] = []
        waiting = list(statements)
        while waiting:
            statement = waiting.pop(0)
            if isinstance(statement, ast.If) and not _is_raw(statement):
                waiting = self._if(statement, waiting, made)
            elif isinstance(statement, _LOOPS):
                waiting = [*self._loop(statement, made), *waiting]
            elif isinstance(statement, _LEAVES):
                made += self._leave(statement)
                return made  # nothing comes to what is behind
            elif isinstance(statement, ast.Assert) and self.exits[-1].loop is not None:
                waiting.insert(0, _assertion(statement))
            elif isinstance(statement, ast.With):
                leaves = _falls(statement.body) & _OFF
                statement.body = self.block(statement.body)
                made.append(statement)
                if leaves and waiting:  # an exception that it swallows goes on behind it, too
                    waiting = [self._unless_left(statement, waiting)]
            else:
                made += self._simple(statement)
        return made

    def _if(self, statement: ast.If, rest: list[ast.stmt], made: list[ast.stmt]) -> list[ast.stmt]:
        """Lift a condition, with what follows where only one arm comes there; return what still follows."""
        yes, no = _falls(statement.body), _falls(statement.orelse)
        body, orelse = statement.body, statement.orelse
        if rest and self.depth < _DEEPEST:
            if yes == _OFF and no != _OFF:
                orelse, rest = [*orelse, *rest], []
            elif no == _OFF and yes != _OFF:
                body, rest = [*body, *rest], []
        before, test = self.conditions.test(statement.test)
        self.depth += 1
        arms = self.block(body), self.block(orelse)
        self.depth -= 1
        made += before
        if is_concrete(test):
            statement.test, statement.body, statement.orelse = test, arms[0] or [_pass(statement)], arms[1]
            made.append(statement)
        else:
            made.append(self.conditions.arms(test, *arms))
        if (yes | no) & _OFF and rest:
            return [self._unless_left(statement, rest)] if (yes | no) & _ON else []
        return rest

    def _unless_left(self, at: ast.stmt, rest: list[ast.stmt]) -> Any:
        """Return the condition under which what follows is reached."""
        exits = self.exits[-1]
        exits.asked = True
        test = ast.Compare(ast.Name(exits.left, ast.Load()), [ast.Eq()], [ast.Constant(0)])
        return _place(ast.If(test, rest, []), at, rest)

    def _leave(self, statement: ast.stmt) -> list[ast.stmt]:
        exits = self.exits[-1]
        if exits.loop is None:
            if not isinstance(statement, ast.Return):
                return [statement]
            before, value = self._value(statement.value) if statement.value else ([], ast.Constant(None))
            if self.depth == 0 and not exits.asked:
                statement.value = value
                return [*before, statement]
            self.returns = True
            kept = _place(ast.Assign([ast.Name(self.result, ast.Store())], value), statement, value)
            return [*before, kept, _number(exits.left, 1, statement)]
        if isinstance(statement, ast.Continue):
            return [_number(exits.left, _CONTINUE, statement)]
        if isinstance(statement, ast.Break):
            exits.broken = True
            return [_number(exits.left, _BREAK, statement)]
        self.numbers += 1
        exits.behind.append((self.numbers, statement))
        return [_number(exits.left, self.numbers, statement)]

    def _loop(self, node: Any, made: list[ast.stmt]) -> list[ast.stmt]:
        """Lift a loop; return what is to be done behind it."""
        if _is_held(node):
            made.append(node)
            return []
        counts = isinstance(node, ast.For)
        before, iterated = self._value(node.iter) if counts else ([], None)
        made += before
        marked = not counts or _is_left(node)
        exits = _Exits(self.conditions, self.conditions.name("x") if marked else None)
        exits.loop = exits.loop or ""
        self.exits.append(exits)
        depth, self.depth = self.depth, 0
        test: list[ast.stmt] = []
        if not counts and not (isinstance(node.test, ast.Constant) and node.test.value):
            start, asked = self.conditions.test(node.test)
            ends = ast.If(self._ask(exits, "ends", asked), [ast.Continue()], [])
            test = [*start, _place(ends, node.test, asked)]
        body = self.block(node.body)
        self.exits.pop()
        self.depth = depth
        start = [_number(exits.left, 0, node)] if marked or exits.asked else []
        if not marked:
            node.iter, node.body = iterated, [*start, *body]
            made.append(node)
            orelse: list[ast.stmt] = node.orelse
            node.orelse = []
            return orelse
        end = ast.Expr(self._ask(exits, "leave", ast.Name(exits.left, ast.Load())))
        target = node.target if counts else ast.Name(self.conditions.name("n"), ast.Store())
        name = str(exits.loop)
        items = [] if iterated is None else [iterated]
        mark = ast.Assign([ast.Name(name, ast.Store())], ast.Call(ast.Name(LOOP, ast.Load()), items, []))
        made.append(_place(mark, node.iter if counts else node.test, iterated))
        whole = ast.For(target, ast.Name(name, ast.Load()), [*test, *start, *body, _place(end, node.body[-1])], [])
        made.append(_place(whole, node, target, whole.body))
        behind = [
            _place(ast.If(self._ask(exits, "left_by", ast.Constant(number)), [statement], []), statement, [statement])
            for number, statement in exits.behind
        ]
        if not (node.orelse and exits.broken):
            return [*behind, *node.orelse]
        left = ast.UnaryOp(ast.Not(), self._ask(exits, "left_by", ast.Constant(_BREAK)))
        return [*behind, _place(ast.If(left, node.orelse, []), node, node.orelse)]

    def _ask(self, exits: _Exits, method: str, argument: ast.expr) -> ast.expr:
        return ast.Call(ast.Attribute(ast.Name(str(exits.loop), ast.Load()), method, ast.Load()), [argument], [])

    # --- statements with expressions

    def _value(self, expr: Any) -> tuple[list[ast.stmt], ast.expr]:
        return self.conditions.value(expr)

    def _simple(self, statement: Any) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)) and statement.value is not None:
            before, statement.value = self._value(statement.value)
        elif isinstance(statement, ast.AugAssign):
            return self._augmented(statement)
        elif isinstance(statement, ast.Try) and not _leaves_at_all(statement):
            for field in ("body", "orelse", "finalbody"):
                setattr(statement, field, self.block(getattr(statement, field)))
            for handler in statement.handlers:
                handler.body = self.block(handler.body)
        return [*before, statement]

    def _augmented(self, statement: Any) -> list[ast.stmt]:
        """Lift ``x[k] += value``: the target is read before the value is computed."""
        before, value = self._value(statement.value)
        target = statement.target
        statement.value = value
        if not before:
            return [statement]
        made: list[ast.stmt] = []

        def kept(expr: ast.expr) -> Any:
            name = self.conditions.name("v")
            made.append(_place(ast.Assign([ast.Name(name, ast.Store())], expr), expr, expr))
            return _place(ast.Name(name, ast.Load()), expr)

        if isinstance(target, ast.Name):
            if not any(isinstance(part, ast.NamedExpr) for x in before for part in walk(x)):
                return [*before, statement]
        else:
            target.value = kept(target.value)
        if isinstance(target, ast.Subscript):
            index = target.slice
            items = index.elts if isinstance(index, ast.Tuple) else [index]
            for k, item in enumerate(items):
                if isinstance(item, ast.Slice):
                    for field in ("lower", "upper", "step"):
                        if getattr(item, field) is not None:
                            setattr(item, field, kept(getattr(item, field)))
                elif not isinstance(item, (ast.Constant, ast.Starred)):
                    items[k] = kept(item)
            target.slice = index if isinstance(index, ast.Tuple) else items[0]
        read: Any = kept(_loaded(target))
        result = ast.copy_location(ast.AugAssign(ast.Name(read.id, ast.Store()), statement.op, value), statement)
        stored = ast.copy_location(ast.Assign([target], ast.Name(read.id, ast.Load())), statement)
        return [*made, *before, _place(result, statement, value), _place(stored, statement)]


def _loaded(target: Any) -> Any:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)


def _own(function: Any) -> list[Any]:
    """Return the nodes of a function, but for those of the functions in it."""
    waiting, found = children(function), []
    while waiting:
        part = waiting.pop()
        found.append(part)
        if not isinstance(part, _SCOPES):
            waiting += children(part)
    return found


def _statements(at: Any) -> list[Any]:
    """Return the statements in a statement, handlers and cases too, but for those of the functions in it."""
    waiting: list[Any] = [at]
    found: list[Any] = []
    while waiting:
        part = waiting.pop()
        for field in _BLOCKS:
            inner = getattr(part, field, ())
            found += inner
            waiting += [x for x in inner if not isinstance(x, _SCOPES)]
    return found


def _falls(statements: list[ast.stmt]) -> int:
    """Return whether statements go on behind, leave, or do either."""
    off = 0
    for statement in statements:
        one = _falls_one(statement)
        if one == _OFF:
            return _OFF
        off |= one & _OFF
    return _ON | off


def _falls_one(statement: ast.stmt) -> int:
    if isinstance(statement, _LEAVES):
        return _OFF
    if isinstance(statement, ast.If):
        return _ON if _is_raw(statement) else _falls(statement.body) | _falls(statement.orelse)
    if isinstance(statement, ast.With):
        return _falls(statement.body) | _ON
    if isinstance(statement, _LOOPS) and not _is_held(statement):
        leaves = any(isinstance(x, (ast.Return, ast.Raise, ast.Assert)) for x in _statements(statement))
        # Its ``else`` may leave the loop around it.
        return _EITHER if leaves or _falls(statement.orelse) & _OFF else _ON
    return _EITHER if isinstance(statement, ast.Assert) else _ON


def _leaves_at_all(statement: ast.stmt) -> bool:
    return any(isinstance(part, (*_LEAVES, ast.Assert)) for part in _statements(statement))


def _is_raw(statement: ast.AST) -> bool:
    """Return True where something is left from within ``try`` or ``match``, which is done as it is written."""
    return any(isinstance(part, _HELD) and _leaves_at_all(part) for part in _statements(statement))


def _is_held(loop: ast.stmt) -> bool:
    """Return True where a loop is left from within ``try`` or ``match``, or an exit from within ``with`` computes."""
    exits = (ast.Return, ast.Raise, ast.Assert)
    return _is_raw(loop) or any(
        isinstance(part, ast.With) and any(isinstance(x, exits) for x in _statements(part))
        for part in _statements(loop)
    )


def _is_left(loop: ast.For) -> bool:
    """Return True where a loop may be left before its end."""
    if any(isinstance(part, (ast.Return, ast.Raise, ast.Assert)) for part in _statements(loop)):
        return True
    waiting: list[Any] = list(loop.body)
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Break):
            return True
        fields = ("orelse",) if isinstance(part, (*_LOOPS, ast.AsyncFor)) else _BLOCKS
        waiting += [] if isinstance(part, _SCOPES) else [x for field in fields for x in getattr(part, field, ())]
    return False


def _assertion(statement: ast.Assert) -> Any:
    error = ast.Call(ast.Name("AssertionError", ast.Load()), [statement.msg] if statement.msg else [], [])
    raised = ast.copy_location(ast.Raise(error, None), statement)
    return _place(ast.If(ast.UnaryOp(ast.Not(), statement.test), [raised], []), statement, statement.test)


def _number(name: str, number: int, at: ast.AST) -> Any:
    return _place(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(number)), at)


def _pass(at: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Pass(), at)


def _place(made: Any, at: ast.AST, *kept: Any) -> Any:
    """Give nodes that have no place that of another one; `kept`, and the statements in it, have theirs."""
    waiting = [made]
    while waiting:
        part = waiting.pop()
        if any(part is x or (isinstance(x, list) and part in x) for x in kept):
            continue
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, at)
        waiting += children(part)
    return made
