// plan/machine_code/snapshot.h: save what arrays hold before a run that may be undone (Snapshot). Attached threads.
#pragma once

#include <vector>

#include "array/numpy.h"
#include "runtime/ref.h"

namespace pyop {

class Snapshot {
  public:
    // Of an array, which the caller keeps. False with an error set.
    bool take(PyArrayObject* array) {
        PyObject* copy = PyArray_NewCopy(array, NPY_KEEPORDER);
        if (!copy) return false;
        taken_.push_back({array, Ref::steal(copy)});
        return true;
    }
    // What memory is shared is put back as it was, whichever comes last. 0, or -1 with an error set.
    int put_back() const {
        for (const auto& [array, copy] : taken_)
            if (PyArray_CopyInto(array, as_array(copy.get())) < 0) return -1;
        return 0;
    }

  private:
    std::vector<std::pair<PyArrayObject*, Ref>> taken_;
};

}  // namespace pyop
