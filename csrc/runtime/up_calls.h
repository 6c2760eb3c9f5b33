// runtime/up_calls.h: list every call that C++ makes up to pyop's own Python, and every attribute that it asks of its
// objects.
//
// C++ reads a slot: `up_calls.power_of`. python/pyop/up_calls.py fills all of them in one place when pyop is imported;
// one that is missing there, or is not in this list, is an error of that import. What a user hands over (functions,
// rules, hooks) is no up-call, nor is what NumPy and the standard library have.
//
// What few programs need is not imported with pyop. In the slot of such a function stands one that imports it when it
// is called. Of what C++ only compares (a class, a function that a step knows) the module that defines it fills the
// slot when it is imported, since before that there is nothing to be compared with; until then it has None.
//
// Threads: attached only. The slots are never emptied.
#pragma once

#include "runtime/python.h"

// X(name, files that read it, what it is)
// clang-format off
#define PYOP_UP_CALLS(X)                                                                                               \
    X(package_directory, "runtime/origin.cpp", "str: the folder whose frames are not the user's, with its last separator") \
    X(shown_place, "runtime/origin.cpp", "(text) -> str: a place as its reader knows it, of a notebook the number of its cell") \
    X(remedy_of_caller, "runtime/refusal.cpp", "() -> str | None: what to write instead of the library that asks")        \
                                                                                                                          \
    X(spec_class, "graph/value_spec.cpp", "type: Spec")                                                                   \
    X(dim_class, "array/call/tree_layout.cpp graph/value_spec.cpp", "type: Dim")                                          \
    X(value_array_ufunc, "graph/value.cpp", "(ufunc, method, inputs, kwargs): NumPy's protocol of ufuncs on Values")      \
    X(value_array_function, "graph/value.cpp", "(function, types, args, kwargs): NumPy's protocol of functions on Values") \
    X(value_getitem, "graph/value.cpp", "(value, key): value[key], beyond integers and slices")                           \
    X(value_in_place, "graph/value_in_place.cpp", "(method, symbol, value, other): `value += other` beyond a ufunc's node") \
    X(value_length, "graph/value_sequence.cpp", "(value) -> int: len(value)")                                             \
    X(value_iterate, "graph/value_sequence.cpp", "(value) -> iterator: iter(value)")                                      \
    X(value_store_part, "graph/storage.cpp", "(part, now): a view of what was written is this now")                                      \
    X(value_linked, "graph/opened.cpp graph/storage.cpp", "(host, part, views, up): what one holds when the other was written, if that is a view")        \
    X(value_contains, "graph/value_sequence.cpp", "(value, item) -> bool: item in value")                                 \
    X(text_of_store, "graph/value.cpp", "(text) -> str | None: the error where NumPy stores a Value in an array")         \
    X(value_decided, "graph/value.cpp", "(value, asked) -> its truth or integer in the call that is traced, or NotImplemented") \
    X(run_itself, "graph/graph.cpp", "type: RunItself, which ends a trace")                                               \
    X(numbers_asked, "graph/value.cpp", "(value) -> array, scalar or None: its numbers, if they are known")               \
    X(unknown_attribute, "graph/value_attributes.cpp", "(value, name, known): for a function that may not go by it")    \
    X(shown_text, "graph/value.cpp autograd/tensor_type.cpp src/refusal_hooks.cpp", "(text, what) -> str: for who may show it, not go by it") \
    X(is_written_as_operator, "graph/value.cpp", "() -> bool: whether the caller's code is at an operator, and no call")  \
    X(power_of, "graph/value_operators.cpp", "(dtype, number) -> ufunc | None: the ufunc that ** is for that exponent")   \
    X(complex_with_scalar, "graph/value_operators.cpp", "(ufunc, complex, Value) -> Number or Value: of a float64 scalar")\
    X(opened, "graph/opened.cpp graph/passes/merge.cpp", "(x) -> x: the start of a differentiation, which merging takes out")              \
    X(stopped, "graph/passes/merge.cpp", "(x) -> x: where no derivative passes, which merging takes out")                 \
                                                                                                                          \
    X(broadcast_like, "plan/steps/like_step.cpp", "(x, like): x in the shape of `like`; a step knows it")                 \
    X(reshape_like, "plan/steps/like_step.cpp", "(x, like): the elements of x in the shape of `like`; a step knows it")   \
    X(count_along, "plan/steps/like_step.cpp", "(a, axis): how many elements; a step knows it")                           \
    X(put, "plan/steps/put.cpp", "(ct, like, key): the adjoint of like[key]; a step knows it")                            \
    X(store, "plan/unread.cpp plan/steps/store.cpp plan/steps/mask.cpp plan/steps/written_over.cpp", "(x, value, key, views, scalar): x after a write; a step knows it")                  \
    X(performed, "plan/unread.cpp plan/steps/written_over.cpp", "(function, roots, args, kwargs, places): the roots after a call; a step knows it") \
    X(in_place_call, "plan/group/elementwise.cpp plan/steps/written_over.cpp", "type: InPlace, augmented assignment; steps know it") \
    X(getitem_with_bounds, "plan/steps/computed_part.cpp plan/steps/store_parts.cpp", "(array, key): array[key], with slices as tuples; a step knows it") \
    X(fresh, "graph/passes/fold.cpp graph/passes/merge.cpp plan/steps/fresh.cpp", "(item, shape): an array of nothing, made anew each time; a step knows it") \
    X(loop_class, "plan/unread.cpp plan/steps/loop.cpp", "type: Loop, what a loop in a graph calls; a step knows it")                      \
    X(branch_class, "plan/steps/branch.cpp", "type: Branch, what a branch in a graph calls; a step knows it")              \
    X(loop_parts, "plan/steps/part.cpp", "(Loop, Branch or (graph, node), passes, fast) -> tuple of plans and numbers")      \
    X(number_call, "plan/steps/c_function.cpp plan/steps/element_call.cpp plan/steps/number_step.cpp", "type: OnNumbers, functions of Python numbers; steps know it") \
    X(size_number, "plan/steps/size_step.cpp", "(size) -> int64 array: the number of a symbolic size; a step knows it") \
    X(call_for_one, "plan/steps/c_function.cpp", "type: CallForOne, a function that returns one in a container")         \
    X(static_key, "plan/guard.cpp", "(value) -> key: by which static values are compared")                                \
    X(result_into, "plan/compiled_function.cpp", "(fn, result, out): out, with the result of a function in it")           \
    X(lost_nulls, "array/foreign/foreign.cpp", "(container) -> str or None: the nulls that NumPy would make NaN")           \
    X(number_class, "plan/guard.cpp", "type: Number, which stands for a Python number while a function is traced")        \
    X(taken, "plan/steps/guard_step.h", "type: Taken, the guards of a function that branches; a step knows it")               \
    X(path_left, "plan/compiled_function.cpp ode/problem.cpp", "type: PathLeft, raised where a plan is of another path") \
    X(quiet_begin, "plan/paths.cpp", "(guard): up to this guard nothing is warned of again")                              \
    X(quiet_end, "plan/paths.cpp", "(): the end of it, if the guard was not reached")                                     \
    X(moment, "plan/tape/interpret.cpp", "(): nothing, and other threads run where it begins")                            \
    X(machine_code_wanted, "plan/machine_code/tape_code.cpp", "(code, now): a TapeCode is to become machine code")       \
                                                                                                                          \
    X(recorded_types, "op/op_call.cpp", "tuple of types: an op is recorded where one is among its arguments")             \
    X(device_call, "op/op_call.cpp", "(op, arrays, statics): an op of device=\"any\" called")                                \
    X(recorded_call, "op/op_call.cpp", "(op, args, kwargs): the op called on arrays, and recorded")                       \
                                                                                                                          \
    X(batched_array, "autograd/function_parts.h plan/guard.cpp", "type: what stands for an array under vmap")                            \
    X(batched_scalar, "autograd/function_parts.h plan/guard.cpp", "type: what stands for a scalar under vmap")                           \
    X(apply_general, "autograd/function_apply.cpp", "(function, args, kwargs): Function.apply on containers")             \
    X(check_none_hidden, "autograd/function_apply.cpp", "(name, container): containers that are passed on whole")        \
    X(apply_symbolic, "autograd/function_apply.cpp", "(function, args, kwargs): Function.apply on Values")                \
    X(apply_batched, "autograd/function_apply.cpp", "(function, args, kwargs): Function.apply under vmap")                \
    X(call_forward_tree, "autograd/function_apply.cpp", "(forward, setup_context, ctx, tree, arrays, kwargs)")            \
    X(creation, "autograd/function_apply.cpp", "() -> dict: the lines that record a node, under detect_anomaly")          \
    X(flatten_gradients, "autograd/function_backward.cpp", "(tree, gradients, name) -> tuple, for arguments in containers") \
    X(check_nan, "autograd/function_backward.cpp", "(name, index, gradient): an error if it has a NaN")                   \
    X(set_tangents, "autograd/function_backward.cpp", "(outputs, tangents, name, arguments): what jvp returned")          \
    X(any_by_argument, "autograd/function_context.cpp", "(tree, flags) -> tuple: one flag an argument")                   \
    X(fit_gradient, "autograd/gradients.cpp", "(gradient, shape, dtype, tensors, take_real, what, name, index)")          \
    X(add_tensors, "autograd/gradients.cpp", "(a, b): two gradients, one a Tensor")                                       \
    X(add_hook, "autograd/hooks.cpp", "(hooks, hook) -> handle")                                                          \
    X(outer, "autograd/builtin_rules.cpp", "(a, b): the derivative of a product of vectors and matrices")                  \
    X(spread, "autograd/builtin_rules.cpp", "(gradient, axis, shape): the derivative of a sum, recorded")                  \
    X(put_back, "autograd/builtin_rules.cpp", "(gradient, key, shape, dtype): the derivative of x[key], recorded")         \
    X(tensor_operator, "autograd/tensor_operators.cpp", "(name of a ufunc, a[, b]): an operator that is not built in")    \
    X(tensor_power, "autograd/tensor_operators.cpp", "(a, b): a ** b beyond plain exponents")                             \
    X(tensor_getitem, "autograd/tensor_operators.cpp", "(a, key): a[key], beyond what is built in")                       \
    X(tensor_setitem, "autograd/tensor_operators.cpp", "(a, key, value): a[key] = value")                                 \
    X(tensor_iterate, "autograd/tensor_operators.cpp", "(a) -> iterator")                                                 \
    X(tensor_array_ufunc, "autograd/tensor_operators.cpp", "(self, ufunc, method, *inputs, **kwargs): NumPy's protocol")  \
    X(tensor_array_function, "autograd/tensor_operators.cpp", "(self, function, types, args, kwargs): NumPy's protocol")  \
    X(record_in_place, "autograd/tensor_writes.cpp", "(name of a ufunc, a, b, numbers): `a += b`, already computed")      \
    X(refuse_write, "autograd/tensor_writes.cpp", "(how, tensor, other): raises, and says what to write instead")

// X(name, files that read it, of what)
#define PYOP_UP_ATTRIBUTES(X)                                                                                             \
    X(dtype, "graph/value_spec.cpp", "Spec")                                                                              \
    X(shape, "graph/value_spec.cpp", "Spec")                                                                              \
    X(terms, "array/contract/size_poly.cpp", "Dim: ((atoms of a product, factor), …)")                                    \
    X(name, "plan/places.cpp", "Dim: its name, or None for an expression")                                                \
    X(evaluate, "plan/feeds.cpp", "Dim: (sizes by name) -> int, or a Dim where one is missing")                           \
    X(infer, "graph/infer.cpp", "Signature: (specs) -> specs. Abstract rules: (specs, statics) -> (specs, contract)")     \
    X(flatten_up_to, "array/call/adopt.cpp op/op_bind.cpp plan/result_forms.cpp", "TreeDef: (tree) -> leaves, by the structure of the TreeDef") \
    X(unflatten, "array/call/tree_call.cpp op/op_call.cpp plan/call.cpp plan/result_forms.cpp", "TreeDef: (leaves) -> tree")                    \
    X(match, "plan/guard.cpp", "TreeDef: (tree, ordered) -> leaves, or None for another structure")                       \
    X(bind, "op/op_type.cpp", "CallOnTrees: (instance) -> the same for a bound method")                                   \
    X(saving, "op/op_symbolic.cpp", "OpGradient: (function, contract, spec) that also gives the residuals, or None")      \
    X(fn, "plan/steps/element_call.cpp plan/steps/number_step.cpp plan/steps/c_function.cpp", "OnNumbers, CallForOne: the function") \
    X(numbers, "plan/steps/c_function.cpp plan/steps/element_call.cpp plan/steps/number_step.cpp", "OnNumbers: which arguments are numbers")        \
    X(ufunc, "plan/group/elementwise.cpp", "InPlace: what it computes, apart from the dtype of the result")              \
    X(asked, "plan/steps/guard_step.cpp", "Taken: 't' a truth, 'i' an integer, 's0' the size of axis 0")                      \
    X(outcome, "plan/steps/guard_step.cpp plan/paths.cpp", "Taken, PathLeft: what it was, an int")                            \
    X(guard, "plan/paths.cpp", "PathLeft: which of the guards")                                                           \
    X(path, "plan/paths.cpp", "PathLeft: the number of the path")                                                         \
    X(_pyop_merge_by_value, "graph/passes/merge.cpp array/call/tree_call.cpp", "classes of callables that compare by ==") \
    X(_read, "src/profile.cpp", "Profile: (events): what a profile has recorded, when it ends")
// clang-format on

namespace pyop {

#define PYOP_UP_SLOT(name, files, meaning) PyObject* name;
struct UpCalls {
    PYOP_UP_CALLS(PYOP_UP_SLOT)
};
struct UpAttributes {
    PYOP_UP_ATTRIBUTES(PYOP_UP_SLOT)
};
#undef PYOP_UP_SLOT

extern UpCalls up_calls;  // None until they are installed, so that a call too early is an error and no crash
extern UpAttributes up_attributes;  // their names, interned

// Adds install_up_calls(calls, attributes) and up_calls() to the module.
int up_calls_init(PyObject* module);

}  // namespace pyop
