# pyop_cold(target list_of_sources): takes the sources that run while a function is traced and compiled, or when something went
# wrong, out of the list, and compiles them for size: half the code, in three quarters of the time. What a call of an op or a plan
# runs is not among them, but for integrators and steps that wait for what they call; nor are the passes that every node goes
# through (graph/passes/, plan/lower.cpp and finish.cpp, plan/group/fuse.cpp and ir_builder.cpp), which are most of what a graph of
# 10⁴ nodes waits for. A file that is in none of these places is compiled for speed, which is never wrong.
set(PYOP_COLD_PLACES
    array/call/gufunc_call.cpp
    array/call/remedy.cpp
    array/call/text.cpp
    array/call/tree_layout.cpp
    array/contract/contract.cpp
    array/contract/describe.cpp
    array/foreign/arrow.cpp
    array/foreign/device.cpp
    array/loop/error_policy.cpp
    array/memory/mapped.cpp
    array/native/native_code.cpp
    array/native/native_kernel.cpp
    array/native/native_ufunc.cpp
    array/native/python_code.cpp
    array/protocol/containers.cpp
    array/reduction/reduction_loop.cpp
    autograd/function_class.cpp
    autograd/hooks.cpp
    autograd/suspended_modes.cpp
    autograd/tensor_type.cpp
    autograd/transformations.cpp
    core_init.cpp
    entry/entry.cpp
    entry/entry_type.cpp
    entry/failure.cpp
    entry/ort_call.cpp
    entry/xla_call.cpp
    graph/graph_type.cpp
    graph/infer.cpp
    graph/node_handle.cpp
    graph/storage.cpp
    graph/value_attributes.cpp
    graph/value_in_place.cpp
    graph/value_item.cpp
    graph/value_memory.cpp
    graph/value_sequence.cpp
    graph/value_spec.cpp
    ode/
    op/op_type.cpp
    plan/beside.cpp
    plan/compiled_function_type.cpp
    plan/trace_call.cpp
    plan/disabled.cpp
    plan/group/combine.cpp
    plan/group/compile.cpp
    plan/group/elementwise.cpp
    plan/machine_code/ir_arithmetic.cpp
    plan/machine_code/ir_cells.cpp
    plan/machine_code/plan_code.cpp
    plan/machine_code/tape_code.cpp
    plan/machine_code/write_ir.cpp
    plan/native_call.cpp
    plan/node_facts.cpp
    plan/passes/
    plan/plan_type.cpp
    plan/steps/accumulate.cpp
    plan/steps/c_function.cpp
    plan/steps/composed_reduction.cpp
    plan/steps/composed_step.cpp
    plan/steps/computed_key.cpp
    plan/steps/computed_part.cpp
    plan/steps/fourier.cpp
    plan/steps/fresh.cpp
    plan/steps/gufunc_products.cpp
    plan/steps/join.cpp
    plan/steps/mean.cpp
    plan/steps/put_sum.cpp
    plan/steps/view_reading.cpp
    plan/tape/find_straight.cpp
    plan/tape/record_group.cpp
    plan/tape/record_group_blocks.cpp
    plan/tape/tape_blocks.cpp
    plan/tape/tape_builder.cpp
    plan/tape/tape_parts.cpp
    plan/unread.cpp
    plan/updates.cpp
    profile/events.cpp
    runtime/origin.cpp
    runtime/refusal.cpp
    runtime/up_calls.cpp)

function(pyop_cold target list_of_sources)
  set(cold)
  foreach(place IN LISTS PYOP_COLD_PLACES)
    set(found ${${list_of_sources}})
    list(FILTER found INCLUDE REGEX "/csrc/${place}")
    list(APPEND cold ${found})
  endforeach()
  set(rest ${${list_of_sources}})
  list(REMOVE_ITEM rest ${cold})
  set(${list_of_sources} ${rest} PARENT_SCOPE)
  add_library(${target} OBJECT ${cold})
endfunction()
