// runtime/without_gil.h: what guards shared state where there is no GIL. With one all of this is nothing.
//
//   ObjectLock   an object's own lock: as the GIL, it is given up whenever the thread waits or detaches, so Python may
//                run inside, and nobody waits for ever; what was read before has to be looked at anew then
//   BriefLock    a few lines of C++ that neither run Python, nor drop a reference, nor wait
//   Relaxed<T>   a number that any thread may change, and that guards nothing
//
// Threads: attached only, but for Relaxed.
#pragma once

#include <atomic>  // std::atomic
#include <mutex>   // std::mutex

#include "runtime/python.h"

namespace pyop {

#ifdef Py_GIL_DISABLED

inline constexpr bool kWithoutGil = true;

class ObjectLock {
  public:
    explicit ObjectLock(PyObject* object) : begun_(!held(object)) {
        if (begun_) PyCriticalSection_Begin(&section_, object);
    }
    ~ObjectLock() {
        if (begun_) PyCriticalSection_End(&section_);
    }
    ObjectLock(const ObjectLock&) = delete;
    ObjectLock& operator=(const ObjectLock&) = delete;

    // The section of that object if this thread is in it and has begun no other one since, else null. (To begin it once
    // more would give it up in between.)
    static PyCriticalSection* held(PyObject* object) {
        const uintptr_t top =
            PyThreadState_GetUnchecked()->critical_section;  // tagged where it is another kind, or rests
        auto* const section = reinterpret_cast<PyCriticalSection*>(top);
        return top && !(top & 3) && section->_cs_mutex == &object->ob_mutex ? section : nullptr;
    }

  private:
    const bool begun_;
    PyCriticalSection section_;
};

class BriefMutex {
  public:
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    std::mutex mutex_;
};

template <class T>
class Relaxed {
  public:
    constexpr Relaxed() = default;
    constexpr Relaxed(T value) : value_(value) {}  // NOLINT(google-explicit-constructor)
    Relaxed(const Relaxed& other) noexcept : value_(T(other)) {}
    Relaxed& operator=(const Relaxed& other) noexcept { return *this = T(other); }
    PYOP_INLINE operator T() const noexcept { return value_.load(std::memory_order_relaxed); }
    Relaxed& operator=(T value) noexcept {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    PYOP_INLINE T operator+=(T by) noexcept { return value_.fetch_add(by, std::memory_order_relaxed) + by; }
    PYOP_INLINE T operator-=(T by) noexcept { return value_.fetch_sub(by, std::memory_order_relaxed) - by; }
    PYOP_INLINE T operator++() noexcept { return *this += 1; }
    PYOP_INLINE T operator--() noexcept { return *this -= 1; }

  private:
    std::atomic<T> value_{};
};

#else

inline constexpr bool kWithoutGil = false;

class ObjectLock {
  public:
    explicit ObjectLock(PyObject*) {}
    ~ObjectLock() {}  // not trivial: a scope that is only left is no unused variable
    ObjectLock(const ObjectLock&) = delete;
    ObjectLock& operator=(const ObjectLock&) = delete;
};

class BriefMutex {
  public:
    void lock() {}
    void unlock() {}
};

template <class T>
using Relaxed = T;

#endif

// Held for a scope.
class BriefLock {
  public:
    explicit BriefLock(BriefMutex& mutex) : mutex_(mutex) { mutex_.lock(); }
    ~BriefLock() { mutex_.unlock(); }
    BriefLock(const BriefLock&) = delete;
    BriefLock& operator=(const BriefLock&) = delete;

  private:
    BriefMutex& mutex_;
};

}  // namespace pyop
