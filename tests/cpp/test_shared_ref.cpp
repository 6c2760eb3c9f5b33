// tests/cpp/test_shared_ref.cpp: SharedRef on attached threads. Detached ones: test_reaper.cpp.
#include <utility>  // std::move
#include <vector>   // std::vector

#include "probe.h"
#include "registry.h"
#include "runtime/shared_ref.h"

using ctests::probe_new;
using pyop::Ref;
using pyop::SharedRef;

PYOP_TEST(shared_ref_steal_takes_over_and_borrow_adds) {
    int deaths = 0;
    Ref probe = probe_new(deaths);
    PyObject* object = probe.get();
    SharedRef borrowed = SharedRef::borrow(object);
    EXPECT_EQ(Py_REFCNT(object), 2);
    SharedRef stolen = SharedRef::steal(probe.release());
    EXPECT_EQ(Py_REFCNT(object), 2);
    EXPECT(borrowed.get() == object && stolen.get() == object);
    borrowed.reset();
    EXPECT(!borrowed && borrowed.get() == nullptr);
    EXPECT_EQ(deaths, 0);
    stolen.reset();
    EXPECT_EQ(deaths, 1);
    stolen.reset();
    EXPECT_EQ(deaths, 1);
}

PYOP_TEST(shared_ref_of_null_is_empty) {
    SharedRef none = SharedRef::steal(nullptr);
    EXPECT(!none && !none.clone() && none.new_ref() == nullptr);
    EXPECT(PyErr_Occurred() == nullptr);
}

PYOP_TEST(shared_ref_clone_is_independent) {
    int deaths = 0;
    SharedRef first = SharedRef::steal(probe_new(deaths).release());
    SharedRef second = first.clone();
    first.reset();
    EXPECT_EQ(deaths, 0);
    Ref third = Ref::steal(second.new_ref());
    second.reset();
    EXPECT_EQ(deaths, 0);
    third.reset();
    EXPECT_EQ(deaths, 1);
}

PYOP_TEST(shared_ref_moves) {
    int deaths = 0;
    SharedRef from = SharedRef::steal(probe_new(deaths).release());
    SharedRef to = std::move(from);
    EXPECT(to && !from);
    SharedRef& self = to;
    to = std::move(self);
    EXPECT(to && deaths == 0);
    std::vector<SharedRef> many(3);
    many[1] = std::move(to);
    many.resize(100);
    EXPECT(many[1] && deaths == 0);
    many.clear();
    EXPECT_EQ(deaths, 1);
}

PYOP_TEST(shared_ref_holds_the_new_object_when_the_old_one_dies) {
    SharedRef slot;
    PyObject* seen = nullptr;
    slot = SharedRef::steal(probe_new([&] { seen = slot.get(); }).release());
    slot = SharedRef::borrow(Py_None);
    EXPECT(seen == Py_None);
}

PYOP_TEST(shared_ref_visit_reports_one_edge) {
    const auto count = [](PyObject* object, void* arg) {
        EXPECT(object == Py_None);
        return ++*static_cast<int*>(arg);
    };
    int edges = 0;
    EXPECT_EQ(SharedRef().visit(count, &edges), 0);
    EXPECT_EQ(SharedRef::borrow(Py_None).visit(count, &edges), 1);
    EXPECT_EQ(edges, 1);
}

namespace {

void* no_memory(void*, size_t) { return nullptr; }

// Lets PyMem_Malloc fail for as long as it lives.
struct MemoryRunsOut {
    MemoryRunsOut() {
        PyMem_GetAllocator(PYMEM_DOMAIN_MEM, &saved);
        PyMemAllocatorEx failing = saved;
        failing.malloc = no_memory;
        PyMem_SetAllocator(PYMEM_DOMAIN_MEM, &failing);
    }
    ~MemoryRunsOut() { PyMem_SetAllocator(PYMEM_DOMAIN_MEM, &saved); }
    PyMemAllocatorEx saved;
};

}  // namespace

PYOP_TEST(shared_ref_out_of_memory_drops_the_reference_and_sets_the_error) {
    int deaths = 0;
    PyObject* object = probe_new(deaths).release();
    bool empty = false;
    {
        MemoryRunsOut for_a_while;
        empty = !SharedRef::steal(object);
    }
    EXPECT(empty);
    EXPECT_EQ(deaths, 1);
    EXPECT(PyErr_ExceptionMatches(PyExc_MemoryError));
    PyErr_Clear();
}
