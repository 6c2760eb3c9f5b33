"""Make a plan for a call that fits no guard."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from .._core import Plan, Tensor, Value, graph_being_built
from .._tree import contains, map_leaves
from ..declare.parameters import check_name
from ..functions.joining import spec as joining  # noqa: F401  # what the function's result is put together by; else the first trace pays
from ..graph.deciding import Decisions, RunItself, Specialise, Unrolled, has_effects, is_of_arguments, needed_by_loops
from ..graph.graph import Graph, twinned
from ..graph.symbolic_number import is_number
from ..refusals import is_of_state, may_run_itself, note_call, refusal_of, runs_itself, was_refused
from ..tracing import error_checks
from ..tracing.captured import Watch
from ..tracing.code import facts
from ..tracing.functions import functions_of
from ..tracing.identity import refuse_held
from ..tracing.own import Own
from ..tracing.places import Array, Reading
from ..tracing.same import same, same_graphs
from ..tracing.type_checks import refuse_exact_types
from . import plainly
from .arguments import (
    PLAIN,
    Argument,
    Arguments,
    answer_at_once,
    describe,
    has_stand_ins,
    needed_at_once,
    repeats,
    stand_in,
    varieties,
)
from .options import Options, compiled
from .results import declare_outputs, finishing
from .retrace import History, NumbersNeeded, captured, log, tell
from .unused_arguments import signature, traced_already, unread
from .written_arguments import (
    any_written,
    call_and_note,
    check_container,
    check_returned,
    declare_writes,
    holds_nothing,
    is_changed,
)

__all__ = ["Tracer"]

# A plan, what finishes its results, the kinds and keys of the leaves, and what was read beside them.
_Traced = tuple[Plan, Any, bytes, tuple[Any, ...], tuple[Reading, ...], tuple[int, ...] | None]


class Tracer:
    """Make plans for a compiled function. Stateless but for the history of what it was asked for."""

    def __init__(self, fn: Callable[..., Any], arguments: Arguments, options: Options) -> None:
        self.fn = fn
        self.name = arguments.name
        self.arguments = arguments
        self.options = options
        from .worth import Deadline, Worth  # by the first function

        self.history, self.worth, self.deadline = History(self.name), Worth(self.name), Deadline()
        self.may_ask = False  # whether a trace ends that changes something, for plans with its state as inputs
        self.states: Any = None  # States, of a function that may hold some
        self.derives = hasattr(fn, "_pyop_graph")  # what it does itself may be refused: it is compiled in any case
        self.deadline_of = Deadline.of_derivative if self.derives else Deadline.of_call
        self.unread = unread(fn)
        # Of arrays that the last trace has read, which plans hold but once.
        self.identity = False  # whether the function may ask if two arguments are one array
        self.elements: list[tuple[weakref.ref[np.ndarray[Any, Any]], bytes]] = []
        self.last: tuple[Any, weakref.ref[Plan], tuple[Reading, ...]] | None = None
        self.by_twins = False  # whether the last trace was one of twins
        self.told = self.retries = False  # that the function itself runs
        self.calls: Any = None  # of other libraries, if they are nodes
        self.once, self.alert = False, 0  # an iterator is used up by its trace; error_checks.sets_error_state()
        self.warned: Any = None  # of what the last trace has computed of things held
        self.reaches_out = False  # it may read a clock, a file, or the like
        self.catches = False  # whether the function may catch what its plan raises
        self.numbers = NumbersNeeded()
        self.holds = holds_nothing  # during a trace: whether the function can reach an object
        self.before: set[Any] = set()  # how traces have gone that were given up for once
        self.unrolled: Unrolled | None = None  # before the first trace

    def miss(
        self, function: Any, args: tuple[Any, ...], n: int, names: Any, out: Any, paths: tuple[Any, ...] | None = None
    ) -> tuple[Any, ...]:
        """Answer a call that fits no guard: ``(result,)``, or the parts of a guard (`Traced` of compiled_function.cpp).

        `paths`: the plans of the paths that the function has for such calls, if it takes another one; () for its plan.
        """
        positional, keywords = args[:n], dict(zip(names, args[n:], strict=True)) if names else {}
        plain = PLAIN.issuperset(map(type, args))
        if self.arguments.takes_any and not plain and out is None:
            answer = answer_at_once(self.fn, function, args, n, names or (), self.arguments.instances)
            if answer is not None:
                return answer
        recorded = not plain and contains((positional, keywords), Tensor)
        symbolic = not plain and (contains((positional, keywords), Value) or has_stand_ins(args))
        inside = recorded or symbolic or graph_being_built() is not None
        may_pass = plain and paths is None and out is None and self.arguments.takes_any
        if inside or (may_pass and self.worth.lets_pass(args)):
            if out is None:
                return (twinned(self.fn)(*positional, **keywords),)
            raise TypeError(f"{self.name}: out= needs arrays, and this call is part of a graph or recorded")
        arguments = self.arguments.read(args, n, names or ())
        places = [place for _, found in arguments for place in found]
        if b"?" in [place.kind for place in places]:
            from .foreign_arguments import call_on_foreign  # on first use

            return call_on_foreign(self.fn, self.name, function, args, n, names or (), out, arguments)
        itself = plainly.Plainly(self.fn, self.name, arguments)
        hits, misses, *_ = function._counts()
        has_state = self.states is not None and paths is None and out is None
        if has_state and (answer := self.states.call(function, args, n, names, False)) is not NotImplemented:
            return (answer,)
        if paths is None and not self.worth.is_worth_a_trace(places, misses, hits + misses):
            return (itself(args, n, names, out),)
        kinds, keys = b"".join([p.kind for p in places]), tuple([p.key for p in places])
        trees = tuple([None if tree.is_leaf else tree for tree, _ in arguments])
        known = signature(arguments, n, names or (), self.unread) if self.unread else None
        plan = None if known is None else traced_already(self.last, function, known)
        if plan is not None and self.last is not None:
            return plan, kinds, trees, keys, None, self.last[2], False
        self.deadline = deadline = self.deadline_of(places)
        ran, self.may_ask = False, has_state and self.states.asks
        try:
            if paths:
                plainly.check_paths(paths)
            self.numbers.check(places, misses, hits + misses)
            if paths != () and not self.derives and self.worth.waits(places, hits):
                self.numbers.note(places)
                if paths and self.worth.most_leave(hits):
                    raise plainly.many_ways(paths)
                ran = True
                return (self.worth.meanwhile(places, lambda: itself(args, n, names, out)),)
            functions = [*functions_of(self.fn)]
            specialised = needed_at_once(places, functions)
            known = None if specialised else known
            specialised |= self.numbers.of(places)
            if self.calls is not None:
                self._call_others()
            plan, finish, kinds, keys, read, outcomes = self._traced(arguments, n, names or (), specialised, functions)
        except RunItself as reason:
            if reason.leaf and self.worth.ends_in_vain(deadline, hits, reason.hesitates):
                reason.leaf = None
            self.worth.note(places, deadline, in_vain=True)
            if reason.leaf is None:
                if has_state and (answer := self.states.call(function, args, n, names, True)) is not NotImplemented:
                    return (answer,)
                self._tell(reason)
            return None, kinds, trees, keys, None, (), False, reason.leaf, itself, False
        except (Exception, plainly.ChangesState) as error:
            if ran or not has_state or not ((again := type(error) is plainly.ChangesState) or is_of_state(error)):
                raise
            if (answer := self.states.call(function, args, n, names, True)) is not NotImplemented:
                return (answer,)
            if not again:
                raise
            self.states.asks = False
            return self.miss(function, args, n, names, out, paths)
        straight = self.derives or not (plan.graph._absorbed or outcomes)
        trial = self.worth.note(places, deadline, straight=straight)
        self.numbers.add(places, specialised, bool(outcomes))
        self.worth.loops |= bool(plan.graph._absorbed)
        entries = None if paths else captured(read) | varieties(arguments, specialised)
        if entries is not None and (message := self.history.count(function, entries)):
            tell(message)
        simple = not (self.identity or specialised or finish is not None or outcomes or self.catches or self.alert)
        whole = known is not None and simple and all(row[0] in b"fz" for row in read)
        self.last = (known, weakref.ref(plan), read) if whole else None
        rerun = self.alert or int(plainly.runs_again(plan.graph, self._runs_again()))
        return plan, kinds, trees, keys, finish, read, self.identity, outcomes, itself, rerun, trial

    def _tell(self, reason: RunItself) -> None:
        """Log that the function runs as it is, and warn of it once."""
        log("%s runs as it is, %s", self.name, reason.why)
        if not self.told:
            self.told = True
            tell(plainly.runs_as_it_is(self._place(), reason))

    def _traced(
        self, arguments: list[Argument], n: int, names: Sequence[str], specialised: set[int], named: list[FunctionType]
    ) -> _Traced:
        """Trace as often as it takes: with Python numbers that the function needs, and as twins where it writes into
        arrays that it makes.
        """
        first: Exception | None = None
        turned = False
        if self.unrolled is None:
            self.unrolled = Unrolled()
            self.by_twins = any(facts(f.__code__).loops for f in named)  # then it is traced as twins first
        while True:
            before = frozenset(self.unrolled)  # a trace may add to it
            self.retries = first is not None  # what it does may be done once more
            try:
                return self._trace(arguments, n, names, specialised, named)
            except Specialise as needed:
                loops = needed_by_loops(needed)
                if not loops <= before:
                    self.unrolled.update(loops)
                    self.unrolled.why = self.unrolled.why or getattr(needed, "why", "")
                    continue
                if not needed.places - specialised:
                    raise RunItself("needs a number that is computed while it runs") from None
                if not self.by_twins and not turned:
                    self.by_twins = turned = True  # whose calls of `math` and `max` do without
                    continue
                self.by_twins = self.by_twins and not turned
                specialised |= needed.places
                continue
            except Exception as error:
                if not was_refused(error) and self._may_run_itself(error):
                    raise plainly.refused(error) from error
                if self.calls is not None:
                    refused = was_refused(error)
                    raise RunItself(f"cannot be compiled ({error})", None if refused else ()) from error
                if first is None and not was_refused(error):
                    if not self.options.fallback:
                        raise
                    self._call_others()
                    continue
                if first is not None and self.options.fallback:
                    self._call_others()
                    continue
                self.by_twins = not self.by_twins
                if first is None:
                    first = error
                    continue
                directly, by_twins = (error, first) if self.by_twins else (first, error)
                failure = directly if str(directly) == str(by_twins) else by_twins
            cause: Any = refusal_of(failure) if self.catches else failure  # which the function may have caught
            if self._may_run_itself(cause):
                raise plainly.refused(cause) from failure
            if failure is not first and not was_refused(failure) and not self.once and not self.derives:
                raise RunItself(f"raised {type(failure).__name__}", ()) from failure  # and does so again
            raise failure  # here it keeps its cause, which may have the remedy

    def _may_run_itself(self, error: Any) -> bool:
        changes = self.states is not None and self.states.may_change
        return not self.once and plainly.is_to_run_itself(self.fn, error, changes)

    def _call_others(self) -> None:
        """Record calls of other libraries as nodes from now on."""
        from ..tracing.foreign import Calls  # on first use

        self.calls, self.by_twins = Calls(tell), True

    def _trace(
        self, arguments: list[Argument], n: int, names: Sequence[str], specialised: set[int], named: list[FunctionType]
    ) -> _Traced:
        kinds: list[bytes] = []
        keys: list[Any] = []
        for _, places in arguments:
            for place in places:
                kinds.append(b"s" if place.kind == b"n" and len(kinds) in specialised else place.kind)
                keys.append(place.key)
        graph: Graph | None = None
        undo: Callable[[], None] | None = None
        try:
            graph, result, watch, read, undo = self._write_down(arguments, n, names, kinds, keys, named)
            outcomes = graph._outcomes
            self.elements = [(weakref.ref(owner), held) for kind, owner, _, held, _ in read if kind == b"b"]
            if b"n" in kinds or graph._kept:
                from ..tracing import statics  # on first use

                statics.check(graph)
            listed = declare_outputs(graph, result, self.name, watch.holds, self.options.scalars)
            options = self.options.keeping_all() if self.catches else self.options.plan
            plan = compiled(graph, options, self.catches, self.options.machine_code)
            finish = finishing(graph, plan, listed, self.warned)
            plainly.check_error_state(self.alert, plan)
        except (Exception, RunItself) as error:
            if undo is not None:
                undo()
            if isinstance(error, RunItself):
                raise
            note_call(error, f"pyop.compile traced {self.name}({describe(arguments)})")
            if not self.options.fallback:
                from ..tracing.blame import note_others  # on first use

                note_others(error)
            raise
        finally:
            self.holds = holds_nothing  # else what it has seen would live on
            if graph is not None:
                self._finish(graph)
        return plan, finish, b"".join(kinds), tuple(keys), read, outcomes

    def _write_down(
        self,
        arguments: Any,
        n: int,
        names: Sequence[str],
        kinds: list[bytes],
        keys: list[Any],
        named: list[FunctionType],
    ) -> tuple[Graph, Any, Watch, tuple[Reading, ...], Callable[[], None]]:
        """Return the graph of one call, what the function returned and what it read, if every call records the same;
        also how to undo what the function has changed.
        """
        from ..tracing.held_warnings import noted  # on first use

        instances = [p.value for _, places in arguments for p in places if p.kind == b"i"]
        known = {id(owner): held for to, held in self.elements if (owner := to()) is not None}
        watch, own = self._looked_at(instances, known), Own()
        if watch.overflown:
            raise TypeError(
                f"{self._place()} can reach more than 20,000 objects beside its arguments, too many to look at each "
                "call whether somebody has changed them: pass those that it reads as arguments, as arrays rather than "
                "many small objects"
            )
        self.once, self.reaches_out, self.holds = watch.goes_on, watch.reaches_out, watch.holds
        plainly.check_iterators(self.once and self.options.fallback)
        functions = [*dict.fromkeys((*named, *watch.functions()))]
        compared = refuse_exact_types(self.fn, functions, self.by_twins)
        error_checks.refuse_error_handling(self.fn, functions)
        self.catches = error_checks.catches_exceptions(functions)
        self.alert = error_checks.sets_error_state(functions)
        may_warn = error_checks.may_warn(functions)
        if compared:
            self.identity = True
            given = [(p.path, p.value) for _, places in arguments for p in places]
            refuse_held(self._place(), [place.owner for place in watch.places if type(place) is Array], given)
            kinds[:] = repeats(arguments, kinds, keys)
        try:
            (graph, result), self.warned = noted(may_warn, self._call, arguments, n, names, kinds, keys)
            if watch.found_generators():
                watch.restore()
                (graph, result), self.warned = noted(may_warn, self._call, arguments, n, names, kinds, keys)
        except (Specialise, RunItself) as error:
            watch.restore()  # there will be another trace, or the function itself runs
            if isinstance(error, RunItself):
                watch.restore_generators()
            if watch.goes_on and type(error) is RunItself:
                raise plainly.computes_otherwise(self._place(), []) from error.__cause__
            raise
        except Exception as error:
            if was_refused(error) or runs_itself(error) or self.options.fallback or self.retries:
                watch.restore()  # there may be another one
            elif left := watch.left_behind():
                watch.restore()
                kept = plainly.keeps_symbolic(self._place(), left)
                raise (kept if watch.goes_on else may_run_itself(kept)) from error
            raise
        changed, drawn = watch.changed(), watch.drawn()
        if changed and (left := watch.left_behind()):
            watch.restore()
            kept = plainly.keeps_symbolic(self._place(), left)
            raise kept if watch.goes_on else may_run_itself(kept)
        if changed and self.may_ask and watch.can_be_restored(changed):
            watch.restore()
            raise plainly.ChangesState(changed[0].label)
        own.first(changed)
        undo = watch.restore
        if not (changed or drawn or watch.fleeting):
            watch = watch.renewed(False)
            return graph, result, watch, tuple(watch.readings(own)), undo
        # Does it matter? Another call must write down the same, and not draw the same; others may draw meanwhile.
        state, left, made = watch.state(), watch.generator_states(), watch.renewed(True)
        if drawn:
            watch.restore_generators()
        for attempt in range(6):
            try:
                (again, result_again), _ = noted(may_warn, self._call, arguments, n, names, kinds, keys)
            except Exception:
                watch.restore()
                raise plainly.goes_on(self._place(), changed, drawn, watch) from None
            self._finish(again)
            own.again(watch.places, state, self.states is not None)
            own.moving += [place.label for place in made.changed() if type(place) is Array]
            moved = watch.drawn()
            if moved and attempt == 0 and same(watch.generator_states(), left):
                watch.restore()
                why = f"draws random numbers from {moved[0]}, and those of the trace would be the same in every call"
                remedy = "Pass the numbers as an argument, or draw them in a pyop.op(..., stateful=True)"
                other = RunItself(why, remedy=remedy)
                raise plainly.computes_otherwise(self._place(), drawn) if watch.goes_on else other
            if not same_graphs(graph, result, again, result_again):
                watch.restore()
                raise plainly.goes_on(self._place(), changed, drawn, watch)
            if own.moving:
                watch.restore()
                moves = plainly.changes_state(self._place(), own.moving)
                raise moves if watch.goes_on else may_run_itself(moves)
            if drawn and not moved:
                watch.restore_generators(left)
            if not (drawn and moved):
                break
        watch.restore(state)
        made.restore()  # what the first call has made and the second has written
        # What the trace has made is looked at, too.
        watch = watch.renewed(bool(changed))
        return graph, result, watch, tuple(watch.readings(own)), undo

    def _looked_at(self, instances: list[Any], known: dict[int, bytes]) -> Watch:
        return Watch(self.fn, instances, known)

    def _runs_again(self) -> bool:
        """Return whether the function itself is to run where its plan raises, for what it has done before."""
        return self.catches or self.calls is not None

    def _place(self) -> str:
        from ..graph.cells import named_place

        return named_place(self.name, self.fn)

    def _call(
        self, arguments: list[Argument], n: int, names: Sequence[str], kinds: list[bytes], keys: list[Any]
    ) -> tuple[Graph, Any]:
        graph = Graph(name=check_name(self.name))
        decisions = graph._deciding = Decisions(graph, self.deadline, self.before)
        graph._limit(plainly.MOST_NODES)
        error_checks.watch_error_state(graph)
        if self.by_twins:
            from ..loops import conversions, items, leaving, membership, unrolled  # noqa: F401  # the stand-ins: on first use
            from ..tracing import casts, joined, literals, math_functions, reflection  # noqa: F401
            from ..tracing.twins import Twins

            graph._twins = Twins(self.calls)
            graph._unrolled = self.unrolled
        given: list[Any] = []
        stand_ins: list[Any] = []
        handed: list[list[Any]] = []
        lent: dict[int, Any] = {}
        number = inputs = 0
        with graph:
            for tree, places in arguments:
                leaves = []
                for place in places:
                    kind = kinds[number]
                    if kind == b"r":
                        leaf = stand_ins[keys[number]]
                    else:
                        leaf = stand_in(graph, place, kind, number)
                        if kind in (b"a", b"d"):
                            leaf._lend()
                            lent[inputs] = leaf
                        if kind not in (b"s", b"i"):
                            inputs += 1
                            decisions.feed(leaf._value if is_number(leaf) else leaf, place.value)
                    leaves.append(leaf)
                    stand_ins.append(leaf)
                    number += 1
                given.append(tree.unflatten(leaves))
                handed.append(leaves)
            try:
                keywords = dict(zip(names, given[n:], strict=True)) if names else {}
                fn = plainly.watched(twinned(self.fn), decisions) if self.reaches_out else twinned(self.fn)
                result = call_and_note(fn, tuple(given[:n]), keywords, lent)
                check_returned(given, result, self.holds)
                if graph._twins is not None:
                    graph._twins.check()
                    result = map_leaves(graph._twins.original, result)
                for (tree, places), leaves, argument in zip(arguments, handed, given, strict=True):
                    check_container(tree, places, leaves, argument, self.name)
                if graph._weak is not None:
                    result = unrolled.settled(graph, result)
                if any_written(lent):
                    result = declare_writes(graph, lent, result, self.name)
                    if decisions.calls_others:
                        raise RunItself("writes into its arguments, and calls other libraries")
            except BaseException as error:
                self._finish(graph)
                if graph._rolling:
                    unrolled.abandoned(graph)
                    if not (isinstance(error, plainly.STOPS) or is_of_arguments(error) or unrolled.tells_how(error)):
                        raise unrolled.Unroll({loop.blamed for loop in graph._rolling}) from None
                changed = any(map(is_changed, (tree for tree, _ in arguments), handed, given)) or has_effects(graph)
                elsewhere = decisions.branched or changed or (self.catches and not self.options.fallback)
                if elsewhere and decisions.reason is None and isinstance(error, Exception) and not was_refused(error):
                    # What the function raises here other calls need not; or it catches what NumPy raises instead.
                    raise RunItself(f"raised {type(error).__name__}", tuple(decisions.outcomes)) from None
                if isinstance(error, RunItself) and error.leaf == () and decisions.branched:
                    error.leaf = tuple(decisions.outcomes)
                raise
            finally:
                graph._deciding = None
        if not self.alert and (graph._crossed() or graph._overflows):
            self.alert = error_checks.OTHER_STATE if graph._crossed() else error_checks.ERRORS_RAISE
        if decisions.reason is not None:  # the function has caught it
            raise decisions.reason
        if len(graph) >= plainly.MOST_NODES:
            graph.constant(0)  # raises once more
        graph._limit(2**31)
        graph._outcomes = tuple(decisions.outcomes) if decisions.branched else None
        return graph, result

    def _finish(self, graph: Graph) -> None:
        """Finish the graph: a Value which the function has kept means nothing any more."""
        graph._finish(f"pyop.compile traced {self.name}")
