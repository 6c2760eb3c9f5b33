// runtime/stable_list.h: StableList, a list that only grows, by its end, and whose elements stay where they are.
//
// Threads: who appends holds a lock; without a GIL anybody reads meanwhile what the size has told of.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <deque>
#include <utility>

#include "runtime/without_gil.h"

namespace pyop {

#ifdef Py_GIL_DISABLED

template <class T>
class StableList {
  public:
    StableList() = default;
    StableList(const StableList&) = delete;
    StableList& operator=(const StableList&) = delete;
    ~StableList() {
        for (std::atomic<T*>& chunk : chunks_) delete[] chunk.load();
    }

    size_t size() const { return size_.load(std::memory_order_acquire); }
    T& operator[](size_t i) { return *place(i); }
    const T& operator[](size_t i) const { return *place(i); }

    void push_back(T item) {
        const size_t n = size();
        std::atomic<T*>& chunk = chunks_[chunk_of(n)];
        if (!chunk.load(std::memory_order_relaxed))
            chunk.store(new T[kFirst << chunk_of(n)], std::memory_order_release);
        *place(n) = std::move(item);
        size_.store(n + 1, std::memory_order_release);
    }

  private:
    // Chunk k has kFirst << k elements.
    static constexpr size_t kFirst = 32;
    static size_t chunk_of(size_t i) { return std::bit_width(i / kFirst + 1) - 1; }
    T* place(size_t i) const {
        const size_t chunk = chunk_of(i);
        return chunks_[chunk].load(std::memory_order_acquire) + (i - kFirst * ((size_t{1} << chunk) - 1));
    }

    std::array<std::atomic<T*>, 40> chunks_{};
    std::atomic<size_t> size_{0};
};

#else

// NOLINTNEXTLINE(misc-unused-alias-decls)
template <class T>
using StableList = std::deque<T>;

#endif

}  // namespace pyop
