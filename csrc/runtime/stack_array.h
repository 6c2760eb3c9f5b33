// runtime/stack_array.h: hold arrays whose length is known when they are made, on the stack where they fit.
#pragma once

#include <algorithm>  // std::fill_n
#include <cstddef>    // size_t
#include <memory>     // std::unique_ptr

#include "runtime/python.h"

namespace pyop {

// `n` items, uninitialised.
template <typename T, size_t N>
class StackArray {
  public:
    explicit StackArray(size_t n) : size_(n) {
        if (n > N) heap_ = std::make_unique_for_overwrite<T[]>(n);
        data_ = heap_ ? heap_.get() : inline_;
    }
    StackArray(size_t n, T value) : StackArray(n) { std::fill_n(data_, n, value); }
    StackArray(const StackArray&) = delete;
    StackArray& operator=(const StackArray&) = delete;

    size_t size() const { return size_; }
    T* data() { return data_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }

  private:
    size_t size_;
    T inline_[N];
    std::unique_ptr<T[]> heap_;
    T* data_;
};

// References (or nulls, as at first) that are dropped at the end. Attached threads.
template <size_t N>
class StackRefs : public StackArray<PyObject*, N> {
  public:
    explicit StackRefs(size_t n) : StackArray<PyObject*, N>(n, nullptr) {}
    ~StackRefs() {
        for (size_t i = 0; i < this->size(); ++i) Py_XDECREF((*this)[i]);
    }
};

}  // namespace pyop
