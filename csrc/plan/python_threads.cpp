// plan/python_threads.cpp: keep the pool: idle threads, and who wakes and ends them.
#include "plan/python_threads.h"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <new>
#include <vector>

#include "runtime/attach.h"
#include "runtime/ref.h"

namespace pyop {

namespace {

constexpr size_t kSpare = 8;  // helpers that stay idle for the next run

struct Helper {
    std::condition_variable wake;
    std::shared_ptr<Job> job;
    bool end = false;
};

// Never destroyed: detached threads may look at it until the process is gone. No Python is called and
// the GIL is not asked for while the mutex is held.
struct HelperPool {
    std::mutex mutex;
    std::vector<std::shared_ptr<Helper>> idle;
    bool closing = false;
};
HelperPool& helper_pool() {
    alignas(HelperPool) static unsigned char storage[sizeof(HelperPool)];
    static HelperPool* instance = new (storage) HelperPool;
    return *instance;
}

PyObject* module_ref = nullptr;  // borrowed for the life of the process

void forget_in_child() { new (&helper_pool()) HelperPool; }

std::shared_ptr<Helper> take_idle(const std::shared_ptr<Job>& job) {
    const std::lock_guard lock(helper_pool().mutex);
    if (helper_pool().idle.empty()) return nullptr;
    auto helper = std::move(helper_pool().idle.back());
    helper_pool().idle.pop_back();
    helper->job = job;
    return helper;
}

bool interpreter_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

constexpr const char* kHelperCapsule = "pyop.helper";

void free_capsule(PyObject* capsule) {
    delete static_cast<std::shared_ptr<Helper>*>(PyCapsule_GetPointer(capsule, kHelperCapsule));
}

int start_helper(const std::shared_ptr<Job>& job) {
    if (interpreter_finalizing()) {  // up to 3.11 Thread.start() would wait for ever for the thread
        PyErr_SetString(PyExc_RuntimeError, "can't create new thread at interpreter shutdown");
        return -1;
    }
    auto helper = std::make_shared<Helper>();
    helper->job = job;
    auto* held = new std::shared_ptr<Helper>(helper);
    Ref capsule = Ref::steal(PyCapsule_New(held, kHelperCapsule, free_capsule));
    if (!capsule) {
        delete held;
        return -1;
    }
    Ref threading = Ref::steal(survive([] { return PyImport_ImportModule("threading"); }));
    Ref target = Ref::steal(PyObject_GetAttrString(module_ref, "_help"));
    if (!threading || !target) return -1;
    Ref thread_class = Ref::steal(PyObject_GetAttrString(threading.get(), "Thread"));
    Ref no_args = Ref::steal(PyTuple_New(0));
    Ref kwargs = Ref::steal(Py_BuildValue("{s:O,s:(O),s:s,s:O}", "target", target.get(), "args", capsule.get(), "name",
                                          "pyop-helper", "daemon", Py_True));
    if (!thread_class || !no_args || !kwargs) return -1;
    Ref thread = Ref::steal(survive([&] { return PyObject_Call(thread_class.get(), no_args.get(), kwargs.get()); }));
    // Waits for the thread to begin, and the interpreter may begin to finalize meanwhile.
    Ref started =
        thread ? Ref::steal(survive([&] { return PyObject_CallMethod(thread.get(), "start", nullptr); })) : Ref();
    if (started) return 0;
    // An interrupt may end the wait for a thread that begins all the same: it is for nobody.
    const std::lock_guard lock(helper_pool().mutex);
    helper->job = nullptr;
    helper->end = true;
    std::erase(helper_pool().idle, helper);
    helper->wake.notify_one();
    return -1;
}

// Waits, detached, for a job or the end. Returns null at the end.
std::shared_ptr<Job> next_job(const std::shared_ptr<Helper>& helper) {
    const DetachScope detached;
    std::unique_lock lock(helper_pool().mutex);
    if (!helper->job) {
        if (helper->end || helper_pool().closing || helper_pool().idle.size() >= kSpare) return nullptr;
        helper_pool().idle.push_back(helper);
        helper->wake.wait(lock, [&] { return helper->job || helper->end; });
    }
    return std::exchange(helper->job, nullptr);
}

PyObject* help(PyObject*, PyObject* capsule) {
    auto* held = static_cast<std::shared_ptr<Helper>*>(PyCapsule_GetPointer(capsule, kHelperCapsule));
    if (!held) return nullptr;
    const std::shared_ptr<Helper> helper = *held;
    while (const std::shared_ptr<Job> job = next_job(helper)) job->help();
    Py_RETURN_NONE;
}

PyObject* close_helpers(PyObject*, PyObject*) {
    const std::lock_guard lock(helper_pool().mutex);
    helper_pool().closing = true;
    for (const auto& helper : helper_pool().idle) {
        helper->end = true;
        helper->wake.notify_one();
    }
    helper_pool().idle.clear();
    Py_RETURN_NONE;
}

PyMethodDef thread_functions[] = {
    {"_help", help, METH_O, "The life of a helper thread."},
    {"_close_helpers", close_helpers, METH_NOARGS, "End the idle helper threads (an atexit hook)."},
    {},
};

}  // namespace

int engage_threads(int n, const std::shared_ptr<Job>& job) {
    for (int i = 0; i < n; ++i) {
        if (const auto helper = take_idle(job)) {
            helper->wake.notify_one();
        } else if (start_helper(job) < 0) {
            if (!PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_MemoryError)) return -1;
            PyErr_Clear();  // no more threads to be had: the caller works with those it has
            return 0;
        }
    }
    return 0;
}

int python_threads_init(PyObject* module) {
    module_ref = module;
    if (PyModule_AddFunctions(module, thread_functions) < 0) return -1;
    if (pthread_atfork(nullptr, nullptr, forget_in_child) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "pthread_atfork failed");
        return -1;
    }
    Ref atexit = Ref::steal(PyImport_ImportModule("atexit"));
    Ref close = Ref::steal(PyObject_GetAttrString(module, "_close_helpers"));
    if (!atexit || !close) return -1;
    return Ref::steal(PyObject_CallMethod(atexit.get(), "register", "(O)", close.get())) ? 0 : -1;
}

}  // namespace pyop
