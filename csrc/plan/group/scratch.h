// plan/group/scratch.h: hold the blocks in which a group of loops keeps what is between its operations.
#pragma once

#include <cstdlib>  // std::aligned_alloc
#include <utility>  // std::swap

#include "runtime/python.h"

namespace pyop {

// Grown, never shrunk.
class ScratchMemory {
  public:
    ~ScratchMemory() { std::free(data_); }
    char* reserve(size_t bytes) {
        if (PYOP_UNLIKELY(bytes > size_)) {
            std::free(data_);
            data_ = static_cast<char*>(std::aligned_alloc(64, (bytes + 63) & ~size_t{63}));
            size_ = data_ ? bytes : 0;
        }
        return data_;
    }
    void swap(ScratchMemory& other) {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

  private:
    char* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace pyop
