// plan/quick/quick_numbers.h: run a plan of single numbers as a tape (plan/tape/): Python's numbers, NumPy's scalars
// and arrays of no dimension go from the arguments of a call into cells, and what comes out is what the function
// returns (QuickNumbers). No array is made on the way.
//
// It may answer "not this way": arguments of other types, what the tape leaves, and floating-point flags that
// np.errstate does not ignore, of which the general way warns.
//
// Lifetime: whoever calls keeps the plan alive, from which the tape borrows. Threads: attached only. Nothing on the
// tape calls Python, but what it returns may be the last reference to something.
#pragma once

#include <memory>

#include "array/memory/recycle.h"
#include "plan/plan.h"
#include "plan/quick/argument.h"
#include "plan/quick/number_form.h"
#include "plan/result_forms.h"
#include "plan/tape/tape.h"

namespace pyop {

class QuickNumbers : public std::enable_shared_from_this<QuickNumbers> {
  public:
    static constexpr size_t kMost = 16;  // arguments

    // Null: not a plan for this. `finish`: what makes the result, as long as the quick way is there. `decides`: it has
    // guards, of which some runs want to be told; `alert`: every flag raises.
    static std::shared_ptr<const QuickNumbers> make(const PlanObject& plan, const std::vector<QuickArgument>& given,
                                                    NumberForm form, PyObject* finish, bool decides, bool alert);

    size_t n_arguments() const { return n_arguments_; }
    // Whether a call makes what is looked at by the collector, or lets go of arrays, which may run Python.
    bool may_run_python() const { return tuple_ || forms_ || form_ == NumberForm::AsIs; }

    // A vectorcall of `self` with so many arguments, to its end.
    PyObject* call(PyObject* const* args, PyObject* self, size_t nargsf, PyObject* names,
                   QuickOtherwise otherwise) const;

  private:
    static constexpr size_t kMostCells = 255;

    struct Argument {
        PyTypeObject* type;
        PyArray_Descr* dtype;
        int type_num;
        uint16_t cell;
        uint32_t bytes;
    };
    struct Result {
        PyArray_Descr* dtype;
        uint16_t cell;
        NumberForm form;
    };

    PYOP_INLINE PyObject* run(PyObject* const* args) const;
    PYOP_INLINE bool load(PyObject* const* args, TapeCell* cells) const;
    PYOP_COLD bool again(PyObject* const* args, TapeCell* cells) const;
    PYOP_INLINE PyObject* result_new(size_t k, const TapeCell* cells) const;
    PYOP_COLD PyObject* array_anew(size_t k, const TapeCell* cells) const;

    std::vector<QuickArgument> given_;  // owns dtypes
    std::vector<Argument> arguments_;
    size_t n_arguments_ = 0;
    std::vector<Result> results_;
    Tape tape_;
    std::vector<std::pair<uint16_t, TapeCell>> constants_;
    NumberForm form_ = NumberForm::AsIs;
    const ResultForms* forms_ = nullptr;  // of `finish_`
    PyObject* finish_ = nullptr;  // borrowed
    bool tuple_ = false, decides_ = false, alert_ = false;
    const Graph* graph_ = nullptr;
    mutable std::vector<ResultRecycler> recyclers_;
};

}  // namespace pyop
