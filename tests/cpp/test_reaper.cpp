// tests/cpp/test_reaper.cpp: references dropped without the GIL, while the interpreter lives.
#include <atomic>   // std::atomic
#include <thread>   // std::thread
#include <utility>  // std::move
#include <vector>   // std::vector

#include "probe.h"
#include "registry.h"
#include "runtime/attach.h"
#include "runtime/reaper.h"
#include "runtime/shared_ref.h"

using ctests::probe_new;
using pyop::drain;
using pyop::reaper_stats;
using pyop::SharedRef;

namespace {

// Drops them on a new thread, in order, while this thread holds the GIL and waits: whoever needs the GIL to
// destroy them hangs here.
void drop_elsewhere(std::vector<SharedRef> refs) {
    std::thread([&refs] {
        for (SharedRef& ref : refs) {
            ref.reset();
        }
    }).join();
}

void drop_elsewhere(SharedRef ref) {
    std::vector<SharedRef> one;
    one.push_back(std::move(ref));
    drop_elsewhere(std::move(one));
}

SharedRef shared_probe(ctests::OnDeath on_death) { return SharedRef::steal(probe_new(std::move(on_death)).release()); }

}  // namespace

PYOP_TEST(reaper_defers_what_a_detached_thread_drops) {
    drain();
    const auto before = reaper_stats();
    int deaths = 0;
    drop_elsewhere(shared_probe([&] { ++deaths; }));
    EXPECT_EQ(deaths, 0);
    EXPECT_EQ(reaper_stats().deferred, before.deferred + 1);
    EXPECT_EQ(reaper_stats().drained, before.drained);
    EXPECT_EQ(drain(), 1);
    EXPECT_EQ(deaths, 1);
    EXPECT_EQ(drain(), 0);
    EXPECT_EQ(reaper_stats().drained, before.drained + 1);
    EXPECT_EQ(reaper_stats().leaked, 0);
}

PYOP_TEST(reaper_poll_drains) {
    drain();
    int deaths = 0;
    pyop::reaper_poll();
    drop_elsewhere(shared_probe([&] { ++deaths; }));
    pyop::reaper_poll();
    EXPECT_EQ(deaths, 1);
}

PYOP_TEST(reaper_drains_by_itself_between_bytecodes) {
    for (int round = 0; round < 3; ++round) {
        int deaths = 0;
        drop_elsewhere(shared_probe([&] { ++deaths; }));
        EXPECT_EQ(deaths, 0);
        // Up to 3.12 the interpreter notices a foreign thread's pending call only when it next takes the GIL.
        {
            pyop::DetachScope give_and_take;
        }
        EXPECT_EQ(PyRun_SimpleString("for _ in range(100): pass"), 0);
        EXPECT_EQ(deaths, 1);
    }
}

PYOP_TEST(reaper_releases_oldest_first) {
    drain();
    std::vector<int> order;
    std::vector<SharedRef> refs;
    for (int i = 0; i < 5; ++i) {
        refs.push_back(shared_probe([&order, i] { order.push_back(i); }));
    }
    drop_elsewhere(std::move(refs));
    EXPECT_EQ(drain(), 5);
    EXPECT(order == (std::vector<int>{0, 1, 2, 3, 4}));
}

PYOP_TEST(reaper_keeps_the_error_indicator) {
    drain();
    bool was_clear = false;
    drop_elsewhere(shared_probe([&] {
        was_clear = PyErr_Occurred() == nullptr;
        PyErr_SetString(PyExc_ValueError, "a finalizer's own");
        PyErr_Clear();
    }));
    PyErr_SetString(PyExc_KeyError, "pending");
    EXPECT_EQ(drain(), 1);
    EXPECT(was_clear);
    EXPECT(PyErr_ExceptionMatches(PyExc_KeyError));
    PyErr_Clear();
}

PYOP_TEST(reaper_drain_is_reentrant) {
    drain();
    std::uint64_t inner = 0;
    std::vector<int> order;
    std::vector<SharedRef> refs;
    refs.push_back(shared_probe([&] {
        order.push_back(1);
        drop_elsewhere(shared_probe([&] { order.push_back(2); }));
        inner = drain();
    }));
    refs.push_back(shared_probe([&] { order.push_back(3); }));
    drop_elsewhere(std::move(refs));
    EXPECT_EQ(drain(), 2);
    EXPECT_EQ(inner, 1);
    EXPECT(order == (std::vector<int>{1, 2, 3}));
}

PYOP_TEST(reaper_many_threads_drop_while_others_drain) {
    constexpr int kThreads = 6;
    constexpr int kEach = 5000;
    drain();
    const auto before = reaper_stats();
    std::atomic<int> deaths{0};
    std::vector<std::vector<SharedRef>> stock(kThreads);
    for (auto& refs : stock) {
        for (int i = 0; i < kEach; ++i) {
            refs.push_back(shared_probe([&] { deaths.fetch_add(1); }));
        }
    }
    std::atomic<int> running{kThreads};
    std::vector<std::thread> threads;
    for (auto& refs : stock) {
        threads.emplace_back([&refs, &running] {
            refs.clear();
            running.fetch_sub(1);
        });
    }
    threads.emplace_back([&running] {  // drains as well, from a thread of C++'s own
        while (running.load() != 0) {
            pyop::AttachScope scope;
            pyop::reaper_poll();
        }
    });
    while (running.load() != 0) {
        pyop::reaper_poll();
        pyop::DetachScope let_the_other_drain;
        std::this_thread::yield();
    }
    {
        pyop::DetachScope let_it_finish;
        for (std::thread& thread : threads) {
            thread.join();
        }
    }
    drain();
#ifdef Py_GIL_DISABLED
    PyRun_SimpleString("pass");  // what this thread has made and another has dropped dies when it runs Python again
#endif
    const auto after = reaper_stats();
    EXPECT_EQ(deaths.load(), kThreads * kEach);
    EXPECT_EQ(after.deferred, before.deferred + kThreads * kEach);
    EXPECT_EQ(after.drained, after.deferred);
    EXPECT_EQ(after.leaked, 0);
}
