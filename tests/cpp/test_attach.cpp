// tests/cpp/test_attach.cpp: who is attached, and changing it.
#include <string>   // std::string
#include <thread>   // std::thread
#include <utility>  // std::move

#include "probe.h"
#include "registry.h"
#include "runtime/attach.h"
#include "runtime/shared_ref.h"

using pyop::attached;
using pyop::AttachScope;
using pyop::DetachScope;
using pyop::WorkerScope;

namespace {

template <class F>
void on_a_thread(F body) {
    DetachScope let_it_attach;
    std::thread(body).join();
}

}  // namespace

PYOP_TEST(attached_tells_this_thread_from_the_others) {
    EXPECT(attached());
    bool elsewhere = true;
    std::thread([&] { elsewhere = attached(); }).join();  // while this thread is the one with the GIL
    EXPECT(!elsewhere);
    {
        DetachScope scope;
        EXPECT(!attached());
    }
    {
        DetachScope scope(false);
        EXPECT(attached());
    }
    EXPECT(attached());
}

PYOP_TEST(attach_scope_on_foreign_threads) {
    std::string seen;
    on_a_thread([&] {
        AttachScope outer;
        seen += outer && attached() ? '1' : '0';
        {
            AttachScope nested;
            seen += nested && attached() ? '1' : '0';
        }
        seen += attached() ? '1' : '0';
        {
            DetachScope detached;
            seen += !attached() ? '1' : '0';
            AttachScope again;
            seen += again && attached() ? '1' : '0';
        }
        seen += attached() ? '1' : '0';
    });
    EXPECT(seen == "111111");
    EXPECT(attached());
}

PYOP_TEST(attach_scope_of_a_detached_python_thread) {
    DetachScope detached;
    AttachScope scope;
    EXPECT(scope && attached());
}

PYOP_TEST(worker_scope_keeps_one_thread_state) {
    PyThreadState* first = nullptr;
    PyThreadState* second = nullptr;
    bool idle_is_detached = false;
    on_a_thread([&] {
        WorkerScope worker;
        idle_is_detached = !attached();
        for (PyThreadState** seen : {&first, &second}) {
            AttachScope scope;
            *seen = PyThreadState_Get();
        }
    });
    EXPECT(idle_is_detached);
    EXPECT(first != nullptr && first == second);
    for (PyThreadState* left = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); left != nullptr;
         left = PyThreadState_Next(left)) {
        EXPECT(left != first);
    }
}

PYOP_TEST(survive_hands_results_and_exceptions_through) {
    int value = 1;
    int& same = pyop::survive([&]() -> int& { return value; });
    EXPECT(&same == &value);
    PyObject* three[] = {Py_None};
    pyop::Ref type = pyop::Ref::steal(pyop::vectorcall_new(reinterpret_cast<PyObject*>(&PyType_Type), three, 1));
    EXPECT(type.get() == reinterpret_cast<PyObject*>(Py_TYPE(Py_None)));
    PyObject* nothing = pyop::vectorcall_new(Py_None, three, 1);
    EXPECT(nothing == nullptr && PyErr_ExceptionMatches(PyExc_TypeError));
    PyErr_Clear();
    bool caught = false;
    try {
        pyop::survive([] { throw std::string("of C++"); });
    } catch (const std::string& thrown) {
        caught = thrown == "of C++";
    }
    EXPECT(caught);
}
