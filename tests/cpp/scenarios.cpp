// tests/cpp/scenarios.cpp: ways for a reference to lose its last owner. Python scripts (tests/lifetime)
// arrange the moment: threads, fork, exit. Most functions take a sequence of objects and make one owner
// (owner.h) of each.
#include <unistd.h>  // write

#include <atomic>   // std::atomic
#include <chrono>   // std::chrono
#include <cstdio>   // std::snprintf
#include <memory>   // std::unique_ptr
#include <thread>   // std::thread
#include <utility>  // std::move
#include <vector>   // std::vector

#include "owner.h"
#include "registry.h"
#include "runtime/attach.h"
#include "runtime/reaper.h"
#include "runtime/ref.h"
#include "runtime/shared_ref.h"

namespace {

using ctests::Owner;
using ctests::Owners;
using ctests::take;
using pyop::AttachScope;
using pyop::DetachScope;
using pyop::Ref;

// The last thing the process says, once asked to: the counters, after all of Python and the static objects
// below.
struct Report {
    bool wanted = false;
    ~Report() {
        if (!wanted) {
            return;
        }
        const pyop::ReaperStats s = pyop::reaper_stats();
        char line[160];
        const int n =
            std::snprintf(line, sizeof line, "at exit: deferred=%llu drained=%llu leaked=%llu\n",
                          static_cast<unsigned long long>(s.deferred), static_cast<unsigned long long>(s.drained),
                          static_cast<unsigned long long>(s.leaked));
        [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, line, static_cast<size_t>(n));
    }
} report;

Owners static_owners;  // destroyed by the C++ runtime after main(), before `report`

PyObject* own_through(PyObject*, PyObject* kind) {
    const bool node = PyUnicode_CompareWithASCIIString(kind, "PyNode") == 0;
    if (!node && PyUnicode_CompareWithASCIIString(kind, "SharedRef") != 0) {
        return PyErr_Format(PyExc_ValueError, "own_through expects 'SharedRef' or 'PyNode', got %R", kind);
    }
    ctests::owns_through_node = node;
    Py_RETURN_NONE;
}

PyObject* drop_attached(PyObject*, PyObject* objects) {
    Owners owners;
    if (!take(objects, owners)) {
        return nullptr;
    }
    owners.clear();
    Py_RETURN_NONE;
}

PyObject* drop_detached(PyObject*, PyObject* objects) {
    Owners owners;
    if (!take(objects, owners)) {
        return nullptr;
    }
    {
        DetachScope no_gil;
        owners.clear();
    }
    Py_RETURN_NONE;
}

PyObject* drop_on_thread(PyObject*, PyObject* objects) {
    Owners owners;
    if (!take(objects, owners)) {
        return nullptr;
    }
    {
        DetachScope others_may_run;
        std::thread([&owners] { owners.clear(); }).join();
    }
    Py_RETURN_NONE;
}

PyObject* drop_on_joined_thread(PyObject*, PyObject* objects) {
    Owners owners;
    if (!take(objects, owners)) {
        return nullptr;
    }
    std::thread([&owners] { owners.clear(); }).join();  // holding the GIL
    Py_RETURN_NONE;
}

// No bytecode between the two, so the main thread has no occasion to collect.
PyObject* drop_and_call(PyObject*, PyObject* arguments) {
    PyObject *objects = nullptr, *callable = nullptr;
    Owners owners;
    if (!PyArg_ParseTuple(arguments, "OO", &objects, &callable) || !take(objects, owners)) {
        return nullptr;
    }
    std::thread([&owners] { owners.clear(); }).join();
    return pyop::vectorcall_new(callable, nullptr, 0);
}

void delete_owners(PyObject* capsule) { delete static_cast<Owners*>(PyCapsule_GetPointer(capsule, "owners")); }

void delete_owners_elsewhere(PyObject* capsule) {
    auto* owners = static_cast<Owners*>(PyCapsule_GetPointer(capsule, "owners"));
    std::thread([owners] { delete owners; }).join();
}

PyObject* capsule_new(PyObject* objects, PyCapsule_Destructor destructor) {
    auto owners = std::make_unique<Owners>();
    if (!take(objects, *owners)) {
        return nullptr;
    }
    return PyCapsule_New(owners.release(), "owners", destructor);
}

PyObject* capsule(PyObject*, PyObject* objects) { return capsule_new(objects, delete_owners); }

PyObject* capsule_with_thread(PyObject*, PyObject* objects) { return capsule_new(objects, delete_owners_elsewhere); }

PyObject* keep_in_static(PyObject*, PyObject* objects) {
    if (!take(objects, static_owners)) {
        return nullptr;
    }
    Py_RETURN_NONE;
}

// A thread nobody joins, dropping one reference after another until the process is gone.
PyObject* drop_for_ever(PyObject*, PyObject* objects) {
    auto owners = std::make_unique<Owners>();
    if (!take(objects, *owners)) {
        return nullptr;
    }
    std::thread([stock = std::move(owners)] {
        for (Owner& owner : *stock) {
            owner.reset();
            std::this_thread::sleep_for(std::chrono::microseconds(1));
        }
        pyop::park_thread();
    }).detach();
    Py_RETURN_NONE;
}

// A thread nobody joins, attaching to make references and to call Python, detaching to drop them, until it
// is told that the interpreter is going.
PyObject* attach_for_ever(PyObject*, PyObject* callable) {
    std::thread([function = Owner::steal(Py_NewRef(callable))]() mutable {
        pyop::WorkerScope worker;
        for (;;) {
            Owners made;
            {
                AttachScope scope;
                if (!scope) {
                    break;
                }
                for (int i = 0; i < 10; ++i) {
                    made.push_back(Owner::steal(PyList_New(1)));
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
    Owner shared = Owner::steal(PyList_New(1));
    for (;;) {
        Ref result = Ref::steal(pyop::vectorcall_new(callable, nullptr, 0));
        if (!result) {
            return nullptr;
        }
        DetachScope detached;
    }
}

std::atomic<bool> churning{false};
std::atomic<long> churners_ready{0};
std::vector<std::thread> churners;

// What the main thread has not come to yet; it may be waiting for a child.
std::uint64_t backlog() {
    const pyop::ReaperStats s = pyop::reaper_stats();
    return s.deferred - s.drained;
}

// N threads that make references and drop them without the GIL, as fast as the others can follow.
PyObject* start_churn(PyObject*, PyObject* count) {
    const long n = PyLong_AsLong(count);
    if (n == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    churning.store(true);
    churners_ready.store(0);
    for (long i = 0; i < n; ++i) {
        churners.emplace_back([] {
            pyop::WorkerScope worker;  // or fork() might meet a thread state being made, see attach.h
            churners_ready.fetch_add(1);
            while (churning.load()) {
                Owners made;
                {
                    AttachScope scope;
                    if (!scope) {
                        return;
                    }
                    for (int k = 0; k < 2000; ++k) {
                        made.push_back(Owner::steal(PyList_New(0)));
                    }
                }
                while (backlog() > 100'000 && churning.load()) {
                    std::this_thread::sleep_for(std::chrono::microseconds(100));
                }
            }
        });
    }
    {
        DetachScope let_them_begin;
        while (churners_ready.load() < n) {
            std::this_thread::yield();
        }
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
    {"own_through", own_through, METH_O, "What owns the objects below: 'SharedRef' or 'PyNode'."},
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
