// plan/quick/quick_arrays.h: run a plan that is one LoopGroup on few elements as one function (QuickArrays): arguments
// are compared with a few words each, and the kernels get their addresses.
//
// It may answer "not this way", before anything can be seen of it: arguments that lie otherwise, floating-point flags
// (which the general way tells of), results that overlap what is read and are too large to be staged.
//
// Lifetime: `self` of a call keeps this and the plan alive, and is held where Python may run. Threads: attached only.
#pragma once

#include <memory>

#include "array/memory/recycle.h"
#include "plan/group/small_run.h"
#include "plan/plan.h"
#include "plan/quick/argument.h"
#include "plan/result_forms.h"

namespace pyop {

class QuickArrays : public std::enable_shared_from_this<QuickArrays> {
  public:
    static constexpr size_t kMost = 16;  // arguments, and externals
    static constexpr size_t kMostResults = 4;

    // Null: not a plan for this. `finish`: what makes the result, as long as the quick way is there, or null.
    static std::shared_ptr<const QuickArrays> make(const PlanObject& plan, const std::vector<QuickArgument>& given,
                                                   PyObject* finish, QuickOtherwise otherwise);

    size_t n_arguments() const { return n_arguments_; }
    bool writes() const { return written_ >= 0; }

    // A vectorcall of `self` with so many arguments, to its end: the caller has nothing to keep meanwhile, and jumps
    // here. `out`: an array for the one result, or null.
    PyObject* call(PyObject* const* args, PyObject* out, PyObject* self, size_t nargsf, PyObject* names) const;

  private:
    static constexpr npy_intp kMostStaged = 1024;  // bytes
    static constexpr int16_t kNowhere = SmallRun::kMostStreams;

    struct Argument {
        PyTypeObject* type;
        PyArray_Descr* dtype;
        int type_num;
        int ndim;
        int flags;  // that an array must have
        int16_t external;  // the first that it is; kNowhere of arrays that are none, -1 of numbers
        npy_intp first_dim, bytes;
        const npy_intp* dims;
    };
    struct External {
        int32_t argument;  // -1: a constant
        char* constant;
        npy_intp bytes;
    };
    using Streams = char * [SmallRun::kMostStreams + 1];  // the last is kNowhere

    bool read_shape(const std::vector<QuickArgument>& given);
    bool read_externals(const PlanObject& plan, const LoopGroup& group, const std::vector<QuickArgument>& given);
    PYOP_INLINE bool read(PyObject* const* args, char** streams, QuickNumber* numbers) const;
    PYOP_INLINE static bool fits_array(PyObject* array, const Argument& a);
    PYOP_INLINE bool may_overlap_some(char* const* streams, const char* low) const;
    [[gnu::noinline]] bool overlaps(char* const* streams, const char* low, npy_intp bytes) const;
    bool written_is_apart(PyObject* const* args) const;
    PYOP_COLD bool take_anew(PyObject** results) const;
    PYOP_INLINE PyObject* call_into(char** streams, PyObject* out) const;
    [[gnu::noinline]] PyObject* call_staged(char** streams, PyObject* out) const;
    // An array that goes for another one may run anything, which may forget this plan, or change the arguments.
    PyObject* call_holding(PyObject* const* args, char** streams, QuickNumber* numbers, PyObject* self, size_t nargsf,
                           PyObject* names) const;
    PyObject* call_anew(PyObject* const* args, char** streams, QuickNumber* numbers) const;
    PyObject* assembled(PyObject** results) const;  // which it takes

    std::vector<QuickArgument> given_;  // owns what `arguments_` points to
    std::vector<Argument> arguments_;
    size_t n_arguments_ = 0, n_externals_ = 0;  // counted once
    Argument target_{};  // what `out` must be
    npy_intp reach_ = 0;  // bytes of the largest external
    std::vector<External> externals_;
    std::vector<npy_intp> shape_;
    std::vector<bool> repeated_;
    std::unique_ptr<SmallRun> run_;
    int32_t written_ = -1;  // the argument that is written into, by a plan that returns None
    bool one_result_ = false;  // which is returned, and alone
    FetchForm form_ = FetchForm::Single;
    PyObject* finish_ = nullptr;  // borrowed; of ResultForms, or null
    std::vector<uint16_t> others_;  // externals that are constants, numbers, or arguments that another one is
    QuickOtherwise otherwise_ = nullptr;
    const PlanObject* plan_ = nullptr;  // borrowed
    const Graph* graph_ = nullptr;
    mutable std::vector<ResultRecycler> recyclers_;
};

}  // namespace pyop
