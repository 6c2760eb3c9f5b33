// tests/cpp/scenarios.cpp: ways for a reference to lose its last owner. Python scripts (tests/lifetime) arrange
// the moment: threads, fork, exit. Every function takes a sequence of objects and makes one SharedRef of each.
#include <unistd.h>  // write

#include <atomic>   // std::atomic
#include <chrono>   // std::chrono
#include <cstdio>   // std::snprintf
#include <memory>   // std::unique_ptr
#include <thread>   // std::thread
#include <utility>  // std::move
#include <vector>   // std::vector

#include "registry.h"
#include "runtime/attach.h"
#include "runtime/reaper.h"
#include "runtime/ref.h"
#include "runtime/shared_ref.h"

namespace {

using pyop::AttachScope;
using pyop::DetachScope;
using pyop::Ref;
using pyop::SharedRef;
using Refs = std::vector<SharedRef>;

// The last thing the process says, once asked to: the counters, after all of Python and the statics below.
struct Report {
    bool wanted = false;
    ~Report() {
        if (!wanted) {
            return;
        }
        const pyop::ReaperStats s = pyop::reaper_stats();
        char line[160];
        const int n = std::snprintf(line, sizeof line, "at exit: deferred=%llu drained=%llu leaked=%llu\n",
                                    static_cast<unsigned long long>(s.deferred),
                                    static_cast<unsigned long long>(s.drained),
                                    static_cast<unsigned long long>(s.leaked));
        [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, line, static_cast<size_t>(n));
    }
} report;

Refs static_refs;  // destroyed by the C++ runtime after main(), before `report`

// Empties and returns false, with the error set, if `objects` is no sequence.
bool take(PyObject* objects, Refs& out) {
    Ref sequence = Ref::steal(PySequence_Fast(objects, "a sequence of objects is needed"));
    if (!sequence) {
        return false;
    }
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence.get());
    out.reserve(static_cast<size_t>(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
        out.push_back(SharedRef::borrow(PySequence_Fast_GET_ITEM(sequence.get(), i)));
    }
    return true;
}

PyObject* drop_attached(PyObject*, PyObject* objects) {
    Refs refs;
    if (!take(objects, refs)) {
        return nullptr;
    }
    refs.clear();
    Py_RETURN_NONE;
}

PyObject* drop_detached(PyObject*, PyObject* objects) {
    Refs refs;
    if (!take(objects, refs)) {
        return nullptr;
    }
    {
        DetachScope no_gil;
        refs.clear();
    }
    Py_RETURN_NONE;
}

PyObject* drop_on_thread(PyObject*, PyObject* objects) {
    Refs refs;
    if (!take(objects, refs)) {
        return nullptr;
    }
    {
        DetachScope others_may_run;
        std::thread([&refs] { refs.clear(); }).join();
    }
    Py_RETURN_NONE;
}

PyObject* drop_on_joined_thread(PyObject*, PyObject* objects) {
    Refs refs;
    if (!take(objects, refs)) {
        return nullptr;
    }
    std::thread([&refs] { refs.clear(); }).join();  // holding the GIL
    Py_RETURN_NONE;
}

// No bytecode between the two, so the main thread has no occasion to collect.
PyObject* drop_and_call(PyObject*, PyObject* arguments) {
    PyObject *objects = nullptr, *callable = nullptr;
    Refs refs;
    if (!PyArg_ParseTuple(arguments, "OO", &objects, &callable) || !take(objects, refs)) {
        return nullptr;
    }
    std::thread([&refs] { refs.clear(); }).join();
    return pyop::vectorcall_new(callable, nullptr, 0);
}

void delete_refs(PyObject* capsule) {
    delete static_cast<Refs*>(PyCapsule_GetPointer(capsule, "refs"));
}

void delete_refs_elsewhere(PyObject* capsule) {
    auto* refs = static_cast<Refs*>(PyCapsule_GetPointer(capsule, "refs"));
    std::thread([refs] { delete refs; }).join();
}

PyObject* capsule_new(PyObject* objects, PyCapsule_Destructor destructor) {
    auto refs = std::make_unique<Refs>();
    if (!take(objects, *refs)) {
        return nullptr;
    }
    return PyCapsule_New(refs.release(), "refs", destructor);
}

PyObject* capsule(PyObject*, PyObject* objects) { return capsule_new(objects, delete_refs); }

PyObject* capsule_with_thread(PyObject*, PyObject* objects) {
    return capsule_new(objects, delete_refs_elsewhere);
}

PyObject* keep_in_static(PyObject*, PyObject* objects) {
    if (!take(objects, static_refs)) {
        return nullptr;
    }
    Py_RETURN_NONE;
}

// A thread nobody joins, dropping one reference after another until the process is gone.
PyObject* drop_for_ever(PyObject*, PyObject* objects) {
    auto refs = std::make_unique<Refs>();
    if (!take(objects, *refs)) {
        return nullptr;
    }
    std::thread([stock = std::move(refs)] {
        for (SharedRef& ref : *stock) {
            ref.reset();
            std::this_thread::sleep_for(std::chrono::microseconds(1));
        }
        pyop::park_thread();
    }).detach();
    Py_RETURN_NONE;
}

// A thread nobody joins, attaching to make references and to call Python, detaching to drop them, until it
// is told that the interpreter is going.
PyObject* attach_for_ever(PyObject*, PyObject* callable) {
    std::thread([function = SharedRef::borrow(callable)]() mutable {
        pyop::WorkerScope worker;
        for (;;) {
            Refs made;
            {
                AttachScope scope;
                if (!scope) {
                    break;
                }
                for (int i = 0; i < 10; ++i) {
                    made.push_back(SharedRef::steal(PyList_New(1)));
                }
                Ref result = Ref::steal(pyop::vectorcall_new(function.get(), nullptr, 0));
                if (!result) {
                    PyErr_WriteUnraisable(function.get());
                }
            }
        }
        function.reset();
        pyop::park_thread();
    }).detach();
    Py_RETURN_NONE;
}

// Calls callable() with owning references of both kinds on the stack: what a daemon thread looks like inside
// an op. `noexcept`, as the frames of a destructor are.
PyObject* call_with_frames(PyObject*, PyObject* callable) noexcept {
    Ref local = Ref::steal(PyList_New(1));
    SharedRef shared = SharedRef::steal(PyList_New(1));
    for (;;) {
        Ref result = Ref::steal(pyop::vectorcall_new(callable, nullptr, 0));
        if (!result) {
            return nullptr;
        }
        DetachScope detached;
    }
}

std::atomic<bool> churning{false};
std::vector<std::thread> churners;

// N threads, each passing its share from hand to hand through the reaper without pause.
PyObject* start_churn(PyObject*, PyObject* count) {
    const long n = PyLong_AsLong(count);
    if (n == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    churning.store(true);
    for (long i = 0; i < n; ++i) {
        churners.emplace_back([] {
            while (churning.load()) {
                Refs made;
                {
                    AttachScope scope;
                    if (!scope) {
                        return;
                    }
                    for (int k = 0; k < 2000; ++k) {
                        made.push_back(SharedRef::steal(PyList_New(0)));
                    }
                }
            }
        });
    }
    Py_RETURN_NONE;
}

PyObject* stop_churn(PyObject*, PyObject*) {
    churning.store(false);
    {
        DetachScope let_them_end;
        for (std::thread& churner : churners) {
            churner.join();
        }
    }
    churners.clear();
    Py_RETURN_NONE;
}

// In a forked child: the threads are not there, and std::thread objects of theirs must not be destroyed.
PyObject* forget_churn(PyObject*, PyObject*) {
    new std::vector<std::thread>(std::move(churners));
    Py_RETURN_NONE;
}

PyObject* stats(PyObject*, PyObject*) {
    const pyop::ReaperStats s = pyop::reaper_stats();
    return Py_BuildValue("{s:K,s:K,s:K,s:O}", "deferred", s.deferred, "drained", s.drained, "leaked", s.leaked,
                         "closed", s.closed ? Py_True : Py_False);
}

PyObject* collect(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(pyop::drain()); }

PyObject* report_at_exit(PyObject*, PyObject*) {
    report.wanted = true;
    Py_RETURN_NONE;
}

}  // namespace

PyMethodDef ctests::scenario_methods[] = {
    {"drop_attached", drop_attached, METH_O, "Drop on this thread, holding the GIL."},
    {"drop_detached", drop_detached, METH_O, "Drop on this thread, without the GIL."},
    {"drop_on_thread", drop_on_thread, METH_O, "Drop on a C++ thread while the GIL is free."},
    {"drop_on_joined_thread", drop_on_joined_thread, METH_O, "Drop on a C++ thread, holding the GIL and joining it."},
    {"drop_and_call", drop_and_call, METH_VARARGS, "The same, then call a function at once and return its result."},
    {"capsule", capsule, METH_O, "A capsule that drops when it dies."},
    {"capsule_with_thread", capsule_with_thread, METH_O, "A capsule that drops on a joined thread when it dies."},
    {"keep_in_static", keep_in_static, METH_O, "Keep until C++ static destructors run."},
    {"drop_for_ever", drop_for_ever, METH_O, "Drop one by one on a thread nobody joins."},
    {"attach_for_ever", attach_for_ever, METH_O, "Call, make and drop on a thread nobody joins."},
    {"call_with_frames", call_with_frames, METH_O, "Call again and again, with references on the C++ stack."},
    {"start_churn", start_churn, METH_O, "Start threads that make and drop without pause."},
    {"stop_churn", stop_churn, METH_NOARGS, "Stop and join them."},
    {"forget_churn", forget_churn, METH_NOARGS, "In a forked child: they are not there."},
    {"stats", stats, METH_NOARGS, "The reaper's counters."},
    {"collect", collect, METH_NOARGS, "Drain; returns how many."},
    {"report_at_exit", report_at_exit, METH_NOARGS, "Print the counters as the last act of the process."},
    {nullptr, nullptr, 0, nullptr},
};
