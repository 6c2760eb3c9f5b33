// tests/cpp/entry_threads.cpp: calls of plans by <pyop/entry.h> from threads that are none of Python's, for
// tests/entry.
#include <atomic>  // std::atomic
#include <cstring>  // std::memcmp
#include <thread>  // std::thread
#include <vector>  // std::vector

#include "include/pyop/entry.h"
#include "registry.h"
#include "runtime/ref.h"

namespace {

using pyop::Ref;

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

}  // namespace

PyMethodDef ctests::entry_methods[] = {
    {"call_on_threads", call_on_threads, METH_VARARGS, "Calls of a plan from threads that Python does not know."},
    {nullptr, nullptr, 0, nullptr},
};
