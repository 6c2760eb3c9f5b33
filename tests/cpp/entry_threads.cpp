// tests/cpp/entry_threads.cpp: calls of plans by <pyop/entry.h> from threads that are none of Python's, for
// tests/entry.
#include <algorithm>  // std::copy, std::fill
#include <atomic>  // std::atomic
#include <cstdlib>  // _Exit
#include <thread>  // std::thread
#include <vector>  // std::vector

#include "include/pyop/entry.h"
#include "registry.h"

namespace {

struct Calls {
    const pyop_plan* plan;
    const void* const* in;
    std::vector<size_t> bytes;                       // of each result
    std::vector<std::vector<unsigned char>> results;  // of the first thread
    std::atomic<int> worst{0}, differ{0};
};

void call_often(Calls& calls, long n, bool first) {
    std::vector<std::vector<unsigned char>> own;
    std::vector<void*> out;
    for (const size_t bytes : calls.bytes) own.emplace_back(bytes);
    for (auto& each : own) out.push_back(each.data());
    std::vector<std::vector<unsigned char>> before;
    for (long i = 0; i < n; ++i) {
        const int status = pyop_plan_call(calls.plan, calls.in, out.data());
        if (status != PYOP_OK) calls.worst = status;
        if (i > 0 && own != before) calls.differ = 1;
        before = own;
    }
    if (first) calls.results = std::move(own);
}

// call_on_threads(address, in, out, threads, calls[, release]): a status; 1 if results differed from call to call.
// Unless `release`, the GIL is held for as long.
PyObject* call_on_threads(PyObject*, PyObject* args) {
    unsigned long long address, in, out;
    int threads, release = 0;
    long n;
    if (!PyArg_ParseTuple(args, "KKKil|p", &address, &in, &out, &threads, &n, &release)) return nullptr;
    Calls calls{};
    calls.plan = reinterpret_cast<const pyop_plan*>(address);
    calls.in = reinterpret_cast<const void* const*>(in);
    for (size_t k = 0; k < pyop_n_outputs(calls.plan); ++k) calls.bytes.push_back(pyop_output(calls.plan, k)->bytes);
    const auto run = [&] {
        std::vector<std::thread> all;
        for (int k = 0; k < threads; ++k) all.emplace_back([&calls, n, k] { call_often(calls, n, k == 0); });
        for (std::thread& each : all) each.join();
    };
    if (release) {
        Py_BEGIN_ALLOW_THREADS;
        run();
        Py_END_ALLOW_THREADS;
    } else {
        run();
    }
    void* const* to = reinterpret_cast<void* const*>(out);
    for (size_t k = 0; k < calls.results.size(); ++k)
        std::copy(calls.results[k].begin(), calls.results[k].end(), static_cast<unsigned char*>(to[k]));
    return PyLong_FromLong(calls.differ ? 1 : calls.worst.load());
}

// Of threads that call until the process ends; never freed, since they outlive all that could free it.
struct Endless {
    const pyop_plan* plan;
    std::vector<std::vector<unsigned char>> inputs;
    std::vector<std::vector<unsigned char>> expected;
    std::atomic<long> calls{0};
};

void call_for_ever(Endless* work) {
    std::vector<const void*> in;
    std::vector<void*> out;
    std::vector<std::vector<unsigned char>> own = work->expected;
    for (const auto& each : work->inputs) in.push_back(each.data());
    for (auto& each : own) out.push_back(each.data());
    for (;;) {
        for (auto& each : own) std::fill(each.begin(), each.end(), static_cast<unsigned char>(0xa5));
        const int status = pyop_plan_call(work->plan, in.data(), out.data());
        if (status == PYOP_SHUT_DOWN) return;
        if (status != PYOP_OK || own != work->expected) _Exit(77);
        ++work->calls;
    }
}

std::vector<Endless*> endless;

// start_calls(address, in, out, threads): `out` holds what each call is to give; the process ends with 77 if one does
// not.
PyObject* start_calls(PyObject*, PyObject* args) {
    unsigned long long address, in, out;
    int threads;
    if (!PyArg_ParseTuple(args, "KKKi", &address, &in, &out, &threads)) return nullptr;
    auto* const work = new Endless{};
    work->plan = reinterpret_cast<const pyop_plan*>(address);
    const auto copy_all = [](unsigned long long from, size_t n, auto told,
                             std::vector<std::vector<unsigned char>>& to) {
        auto* const at = reinterpret_cast<const unsigned char* const*>(from);
        for (size_t k = 0; k < n; ++k) to.emplace_back(at[k], at[k] + told(k)->bytes);
    };
    const pyop_plan* const plan = work->plan;
    copy_all(in, pyop_n_inputs(plan), [&](size_t k) { return pyop_input(plan, k); }, work->inputs);
    copy_all(out, pyop_n_outputs(plan), [&](size_t k) { return pyop_output(plan, k); }, work->expected);
    endless.push_back(work);
    for (int k = 0; k < threads; ++k) std::thread(call_for_ever, work).detach();
    Py_RETURN_NONE;
}

PyObject* calls_made(PyObject*, PyObject*) {
    long all = 0;
    for (const Endless* each : endless) all += each->calls;
    return PyLong_FromLong(all);
}

}  // namespace

PyMethodDef ctests::entry_methods[] = {
    {"start_calls", start_calls, METH_VARARGS, "Threads that call a plan until the process ends."},
    {"calls_made", calls_made, METH_NOARGS, "How many calls they have made."},
    {"call_on_threads", call_on_threads, METH_VARARGS, "Calls of a plan from threads that Python does not know."},
    {nullptr, nullptr, 0, nullptr},
};
