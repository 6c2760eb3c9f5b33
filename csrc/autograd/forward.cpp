// autograd/forward.cpp: begin and end a run of forward mode, call within and without one, and hand on tangents.
#include "autograd/forward.h"

#include "autograd/grad_node.h"
#include "autograd/modes.h"
#include "autograd/tensor.h"
#include "autograd/turn.h"
#include "runtime/errors.h"
#include "runtime/refusal.h"
#include "runtime/tally.h"

namespace pyop {

namespace {

std::atomic<uint64_t> begun = 0;  // runs so far
constinit Tally going_on;  // on all threads

void forget_tangents(PyObject* nodes) {
    const SavedError keep;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(nodes); ++i) {
        GradNode* node = as_grad_node(PyList_GET_ITEM(nodes, i));
        if (!node->extra) continue;
        Py_CLEAR(node->extra->tangents);
        release_run(std::exchange(node->extra->run, nullptr));
    }
}

// A run, from its beginning to its end.
class Forward {
  public:
    Forward() : run_(new ForwardRun{1, false, ++begun, PyList_New(0)}), this_one_(autograd_state.forward, run_) {
        ++going_on;
    }
    ~Forward() {
        --going_on;
        run_->over = true;
        if (run_->nodes) forget_tangents(run_->nodes);
        Py_CLEAR(run_->nodes);
        release_run(run_);
    }
    Forward(const Forward&) = delete;
    Forward& operator=(const Forward&) = delete;
    bool begun_well() const { return run_->nodes; }

  private:
    ForwardRun* run_;
    const Within<ForwardRun*> this_one_;
};

PyObject* call_moving(PyObject*, PyObject* given) {
    ModeCall call;
    if (!PyArg_ParseTuple(given, "OO!O!:call_moving", &call.fn, &PyTuple_Type, &call.args, &PyDict_Type, &call.kwargs))
        return nullptr;
    return guarded(
        [&]() -> PyObject* {
            const Forward run;
            return run.begun_well() ? call.run() : nullptr;
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* call_without_tangents(PyObject*, PyObject* given) {
    ModeCall call;
    if (!PyArg_ParseTuple(given, "OO!O!:call_without_tangents", &call.fn, &PyTuple_Type, &call.args, &PyDict_Type,
                          &call.kwargs))
        return nullptr;
    const Within still(autograd_state.still, newest_run());
    return call.run();
}

PyObject* call_quietly(PyObject*, PyObject* given) {
    ModeCall call;
    if (!PyArg_ParseTuple(given, "OO!O!:call_quietly", &call.fn, &PyTuple_Type, &call.args, &PyDict_Type, &call.kwargs))
        return nullptr;
    const Recording off(false);
    const Within still(autograd_state.still, newest_run());
    return call.run();
}

PyObject* forward_running(PyObject*, PyObject*) { return PyBool_FromLong(is_moving(autograd_state.forward)); }

PyObject* forward_runs(PyObject*, PyObject*) { return PyLong_FromLong(going_on); }

PyObject* give_tangents_py(PyObject*, PyObject* given) {
    PyObject *outputs, *tangents, *arguments;
    if (!PyArg_ParseTuple(given, "OOO!:give_tangents", &outputs, &tangents, &PyTuple_Type, &arguments)) return nullptr;
    if (give_tangents(outputs, tangents, reinterpret_cast<PyTupleObject*>(arguments)->ob_item,
                      PyTuple_GET_SIZE(arguments)) < 0)
        return nullptr;
    Py_RETURN_NONE;
}

PyObject* begin_tangent(PyObject*, PyObject* given) {
    PyObject *t, *tangent;
    if (!PyArg_ParseTuple(given, "O!O:begin_tangent", tensor_type, &t, &tangent)) return nullptr;
    if (tensor_set_tangent(as_tensor(t), tangent == Py_None ? nullptr : tangent, autograd_state.forward) < 0)
        return nullptr;
    Py_RETURN_NONE;
}

PyObject* take_tangent(PyObject*, PyObject* o) {
    TensorExtra* extra = is_tensor(o) ? as_tensor(o)->extra : nullptr;
    if (!extra || !extra->tangent || extra->run != autograd_state.forward) Py_RETURN_NONE;
    Ref tangent = Ref::borrow(extra->tangent);
    return tensor_set_tangent(as_tensor(o), nullptr, nullptr) < 0 ? nullptr : tangent.release();
}

PyMethodDef forward_functions[] = {
    {"call_without_tangents", call_without_tangents, METH_VARARGS,
     "call_without_tangents(fn, args, kwargs): where no tangent moves along."},
    {"call_quietly", call_quietly, METH_VARARGS,
     "call_quietly(fn, args, kwargs): on arrays, what a function does inside being its own business: nothing is "
     "recorded, and no tangent moves along."},
    {"call_moving", call_moving, METH_VARARGS, "call_moving(fn, args, kwargs): in a run forward."},
    {"forward_running", in_turn<forward_running>, METH_NOARGS,
     "forward_running(): whether this thread is in a run forward whose tangents move."},
    {"forward_runs", forward_runs, METH_NOARGS, "forward_runs(): how many runs forward are going on, on all threads."},
    {"give_tangents", in_turn<give_tangents_py>, METH_VARARGS,
     "give_tangents(outputs, tangents, arguments): what an operation on arguments with tangents returned has these."},
    {"begin_tangent", in_turn<begin_tangent>, METH_VARARGS,
     "begin_tangent(t, tangent): of the run that this thread is in."},
    {"take_tangent", in_turn<take_tangent>, METH_O,
     "take_tangent(t): its tangent in the run that this thread is in, which it has no more; or None."},
    {},
};

}  // namespace

uint64_t newest_run() { return begun; }

void release_run(ForwardRun* run) {
    if (!run || --run->references) return;
    Py_XDECREF(run->nodes);
    delete run;
}

int tensor_set_tangent(TensorObject* t, PyObject* tangent, ForwardRun* run) {
    TensorExtra* extra = tensor_extra(t);
    if (!extra) return -1;
    release_run(std::exchange(extra->run, tangent ? share(run) : nullptr));
    Py_XSETREF(extra->tangent, Py_XNewRef(tangent));
    tensor_track(t);
    return 0;
}

int give_tangents(PyObject* outputs, PyObject* tangents, PyObject* const* arguments, Py_ssize_t n) {
    ForwardRun* run = nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (!is_tensor(arguments[i]) || !tensor_tangent(as_tensor(arguments[i]))) continue;
        ForwardRun* of_this = as_tensor(arguments[i])->extra->run;
        if (!run) run = of_this;
        if (run == of_this) continue;
        refuse(PyExc_RuntimeError,
               "forward derivatives (pyop.jvp, jacobian(mode='forward')) that were begun on two threads, one inside of "
               "the other, meet in one operation, and each would lose the other's tangents: take the inner one on the "
               "thread of the outer one, or with pyop.grad, vjp or jacobian(mode='reverse')");
        const Ref error = take_pending();
        note_everywhere(error.get());
        restore_pending(Ref::borrow(error.get()));
        return -1;
    }
    if (!run) return 0;  // it is over by now
    Ref made = Ref::steal(PySequence_Tuple(outputs)), moved = Ref::steal(PySequence_Tuple(tangents));
    if (!made || !moved) return -1;
    GradNode* node = nullptr;
    const Py_ssize_t count = PyTuple_GET_SIZE(made.get());
    Ref noted = Ref::steal(PyTuple_New(count));
    if (!noted) return -1;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* output = PyTuple_GET_ITEM(made.get(), i);
        PyObject* tangent = i < PyTuple_GET_SIZE(moved.get()) ? PyTuple_GET_ITEM(moved.get(), i) : Py_None;
        if (!is_tensor(output)) tangent = Py_None;
        PyTuple_SET_ITEM(noted.get(), i, Py_NewRef(tangent));
        if (!is_tensor(output)) continue;
        if (!node) node = as_tensor(output)->grad_fn;
        if (tangent != Py_None && tensor_set_tangent(as_tensor(output), tangent, run) < 0) return -1;
    }
    if (!node || !run->nodes) return 0;
    NodeExtra* extra = grad_node_extra(node);
    if (!extra || PyList_Append(run->nodes, as_object(node)) < 0) return -1;
    Py_XSETREF(extra->tangents, noted.release());
    release_run(std::exchange(extra->run, share(run)));
    return 0;
}

bool any_forward_run() { return going_on > 0; }

int forward_init(PyObject* module) { return PyModule_AddFunctions(module, forward_functions); }

}  // namespace pyop
