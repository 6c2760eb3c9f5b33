// entry/blas_calls.cpp: count by groups of threads, so that many threads do not write to one place.
#include "entry/blas_calls.h"

#include <pthread.h>
#include <time.h>

#include <cstdint>

#include "runtime/python.h"

namespace pyop {

namespace {

struct alignas(64) Group {
    std::atomic<long> inside{0};
};
constinit Group groups[16];
constinit std::atomic<bool> ended{false};

Group& own_group() {
    static thread_local char here;
    return groups[(reinterpret_cast<uintptr_t>(&here) * 0x9E3779B97F4A7C15u) >> 60];
}

constinit std::atomic<bool> forking{false};
constexpr timespec kTurn{0, 100'000};

bool any_inside() {
    for (const Group& each : groups)
        if (each.inside.load(std::memory_order_seq_cst) != 0) return true;
    return false;
}

// Not for ever: a call may be waiting for the GIL, or fork() may be called under it, by a handler of a signal.
void wait_for_all(int turns) {
    for (int k = 0; k < turns && any_inside(); ++k) nanosleep(&kTurn, nullptr);
}

void before_fork() {
    forking.store(true, std::memory_order_seq_cst);
    wait_for_all(1000);
}
void behind_fork() { forking.store(false, std::memory_order_seq_cst); }
void in_child() {
    for (Group& each : groups) each.inside.store(0, std::memory_order_relaxed);
    behind_fork();
}

}  // namespace

int hold_blas_calls_at_fork() {
    static std::atomic<bool> done{false};
    if (done.exchange(true)) return 0;
    if (pthread_atfork(before_fork, behind_fork, in_child) == 0) return 0;
    done = false;
    PyErr_NoMemory();
    return -1;
}

BlasCall::BlasCall(bool needed) {
    if (!needed) return;
    inside_ = &own_group().inside;
    // The count before the look, as the other side sets and then counts.
    inside_->fetch_add(1, std::memory_order_seq_cst);
    while (__builtin_expect(forking.load(std::memory_order_seq_cst), false)) {
        inside_->fetch_sub(1, std::memory_order_seq_cst);
        nanosleep(&kTurn, nullptr);
        inside_->fetch_add(1, std::memory_order_seq_cst);
    }
    allowed_ = !ended.load(std::memory_order_seq_cst);
}

void end_blas_calls() {
    ended.store(true, std::memory_order_seq_cst);
    wait_for_all(20'000);
}

}  // namespace pyop
