// runtime/fixed_vector.h: hold at most N items inline (FixedVector): what passes make for every node must not be an
// allocation each.
#pragma once

#include <algorithm>  // std::copy
#include <cassert>
#include <cstddef>  // size_t
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace pyop {

template <typename T, size_t N>
class FixedVector {
    static_assert(std::is_trivially_copyable_v<T> && N < 256);

  public:
    FixedVector() = default;
    FixedVector(std::initializer_list<T> items) { append(items.begin(), items.end()); }

    void push_back(T item) {
        assert(size_ < N);
        items_[size_++] = item;
    }
    void append(const T* first, const T* last) {
        assert(static_cast<size_t>(last - first) <= N - size_);
        std::copy(first, last, items_ + size_);
        size_ = static_cast<uint8_t>(size_ + (last - first));
    }
    void pop_back() { --size_; }

    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T& operator[](size_t i) { return items_[i]; }
    const T& operator[](size_t i) const { return items_[i]; }
    const T& front() const { return items_[0]; }
    const T& back() const { return items_[size_ - 1]; }
    const T* data() const { return items_; }
    const T* begin() const { return items_; }
    const T* end() const { return items_ + size_; }

  private:
    T items_[N];
    uint8_t size_ = 0;
};

}  // namespace pyop
