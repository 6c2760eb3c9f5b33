// plan/group/layout.h: describe how the arrays of one run lie over the elements of its result (GroupLayout).
#pragma once

#include <vector>

#include "array/view/strided_walk.h"
#include "plan/group/lines.h"
#include "plan/group/loop_group.h"

namespace pyop {

struct GroupLayout {
    // False: not in a way that a group can run.
    bool find(const LoopGroup& group, PyObject* const* externals);

    int ndim = 0;
    npy_intp size = 1;               // elements; places, where `by_lines`
    const npy_intp* shape = nullptr;
    bool fortran = false;            // elements are counted in Fortran order, and results lie so
    uint64_t contiguous = 0;            // externals read where they lie
    uint64_t scalar = 0;                // externals of one element
    uint64_t strided = 0;               // externals read where they lie, step by step
    std::vector<StridedWalk> gathered;  // all the others, in order: a block at a time is put side by side
    bool by_lines = false;  // `contiguous` are those that lie as `lines` say; results are gathered from blocks
    Lines lines;

  private:
    bool find_lines(const LoopGroup& group, PyObject* const* externals, const npy_intp* strides);
    bool find_simple(const LoopGroup& group, PyObject* const* externals);
    bool find_alike(const LoopGroup& group, PyObject* const* externals);
    bool find_general(const LoopGroup& group, PyObject* const* externals);
    bool read_as_lines() const;
    bool lies_by_lines(const npy_intp* strides, npy_intp itemsize) const;
    npy_intp shape_[NPY_MAXDIMS];
    const npy_intp* strides_of_lines_ = nullptr;  // of the first that lies so; while find_general runs
    npy_intp itemsize_of_lines_ = 0;
};

}  // namespace pyop
