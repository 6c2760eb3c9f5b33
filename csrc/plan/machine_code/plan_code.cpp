// plan/machine_code/plan_code.cpp: walk over the tapes of a program and of those that it runs.
#include "plan/machine_code/plan_code.h"

#include "graph/value.h"
#include "plan/machine_code/hot_tape.h"
#include "plan/tape/straight_tape.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

// Calls it with each tape and the node that the tape begins with, or the first loop on it. False: it has ended the
// walk.
template <class Function>
bool for_each_tape(const Program& p, const Function& function) {
    for (size_t k = 0; k < p.instructions.size(); ++k) {
        const Instruction& ins = p.instructions[k];
        if (ins.tape) {
            size_t loop = k;
            for (size_t j = k; j < k + ins.tape->span() && loop == k; ++j)
                if (p.instructions[j].native && !p.instructions[j].native->parts().empty()) loop = j;
            if (!function(p, p.instructions[loop].native->fallback().nodes[0], ins.tape->hot())) return false;
        }
        if (!ins.native) continue;
        const HotTape* hot = ins.native->hot();
        if (hot && !function(p, ins.native->fallback().nodes[0], *hot)) return false;
        for (const auto& [part, n] : ins.native->parts())
            if (!for_each_tape(*part, function)) return false;
    }
    return true;
}

const Program& program_of_plan(PyObject* plan) { return *reinterpret_cast<const PlanObject*>(plan)->program; }

}  // namespace

PyObject* plan_machine_code(PyObject* self, PyObject*) {
    return guarded(
        [&]() -> PyObject* {
            Ref list = Ref::steal(PyList_New(0));
            const bool done =
                list && for_each_tape(program_of_plan(self), [&](const Program& p, uint32_t node, const HotTape& hot) {
                    Ref handle = Ref::steal(node_handle_new(reinterpret_cast<const PlanObject*>(p.plan)->graph, node));
                    Ref code = handle ? hot.describe() : Ref();
                    Ref pair = code ? Ref::steal(PyTuple_Pack(2, handle.get(), code.get())) : Ref();
                    return pair && PyList_Append(list.get(), pair.get()) == 0;
                });
            return done ? list.release() : nullptr;
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* plan_set_machine_code(PyObject* self, PyObject* name) {
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) return nullptr;
    MachineCodePolicy policy;
    if (!read_policy(text, policy)) return PyErr_Format(PyExc_ValueError, "there is no such policy: %R", name);
    for_each_tape(program_of_plan(self), [&](const Program&, uint32_t, const HotTape& hot) {
        hot.set_policy(policy);
        return true;
    });
    Py_RETURN_NONE;
}

}  // namespace pyop
