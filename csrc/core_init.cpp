// core_init.cpp: initialise the core, in the order of its layers.
#include "core_init.h"

#include "array/call/tree_call.h"
#include "array/contract/contract.h"
#include "array/foreign/managed.h"
#include "array/memory/pool.h"
#include "array/native/native_kernel.h"
#include "array/native/python_code.h"
#include "array/numpy.h"
#include "autograd/autograd.h"
#include "entry/entry.h"
#include "graph/value.h"
#include "ode/integrate.h"
#include "op/op.h"
#include "plan/beside.h"
#include "plan/compiled_function.h"
#include "plan/disabled.h"
#include "plan/machine_code/tape_code.h"
#include "plan/plan.h"
#include "plan/python_threads.h"
#include "plan/quick/number_form.h"
#include "plan/result_forms.h"
#include "plan/state_inputs.h"
#include "plan/steps/guard_step.h"
#include "plan/steps/written_over.h"
#include "runtime/errors.h"
#include "runtime/reaper.h"
#include "runtime/up_calls.h"

namespace pyop {

int core_init(PyObject* module) {
    if (reaper_init(module) < 0 || errors_init(module) < 0 || up_calls_init(module) < 0 || numpy_init() < 0 ||
        pool_init() < 0 || foreign_init(module) < 0 || native_code_init(module) < 0 || native_kernel_init(module) < 0 ||
        python_code_init(module) < 0 || contract_init(module) < 0 || tree_call_init(module) < 0 ||
        graph_init(module) < 0 || value_init(module) < 0 || node_init(module) < 0 || tape_code_init(module) < 0 ||
        plan_init(module) < 0 || number_form_init(module) < 0 || result_forms_init(module) < 0 ||
        entry_init(module) < 0 || ode_init(module) < 0 || disabled_init(module) < 0 || beside_init(module) < 0 ||
        guard_step_init(module) < 0 || written_over_init(module) < 0 || compiled_function_init(module) < 0 ||
        state_inputs_init(module) < 0 || python_threads_init(module) < 0 || op_init(module) < 0 ||
        autograd_init(module) < 0)
        return -1;
    return 0;
}

}  // namespace pyop
