// graph/small_array.h: hold a fixed-length array that keeps up to N items inline. Most nodes have one or two inputs
// and one output, and a million of them should not cost a million extra allocations.
#pragma once

#include <algorithm>  // std::copy_n
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace pyop {

template <typename T, uint32_t N>
class SmallArray {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    SmallArray() = default;
    explicit SmallArray(std::span<const T> items) : size_(static_cast<uint32_t>(items.size())) {
        if (size_ > N) heap_ = new T[size_];
        std::copy_n(items.data(), size_, data());
    }
    SmallArray(SmallArray&& other) noexcept : size_(std::exchange(other.size_, 0)) {
        if (size_ > N)
            heap_ = other.heap_;
        else
            std::copy_n(other.inline_, size_, inline_);
    }
    SmallArray& operator=(SmallArray&&) = delete;
    ~SmallArray() {
        if (size_ > N) delete[] heap_;
    }

    uint32_t size() const { return size_; }
    T* data() { return size_ > N ? heap_ : inline_; }
    const T* data() const { return size_ > N ? heap_ : inline_; }
    const T& operator[](size_t i) const { return data()[i]; }
    const T* begin() const { return data(); }
    const T* end() const { return data() + size_; }
    std::span<const T> span() const { return {data(), size_}; }

  private:
    uint32_t size_ = 0;
    union {
        T inline_[N];
        T* heap_;
    };
};

}  // namespace pyop
