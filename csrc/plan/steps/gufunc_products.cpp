// plan/steps/gufunc_products.cpp: call functions that NumPy's C API has too there: np.dot and np.inner, whose results
// differ in their last bits from those of matmul, np.linalg.norm by way of dot, and the searches.
//
// They are the very functions that NumPy calls, so all that is left out is the way there. Whatever raises is left to
// the function, for its own words.
#include <cfenv>
#include <cmath>

#include "array/loop/fp_flags.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"

namespace pyop {

namespace {

enum class ProductFunction { Dot, Inner, Norm, ArgMax, ArgMin, CountNonzero };

constexpr Named<ProductFunction> kProducts[] = {
    {"dot", ProductFunction::Dot},          {"inner", ProductFunction::Inner},
    {"linalg.norm", ProductFunction::Norm}, {"argmax", ProductFunction::ArgMax},
    {"argmin", ProductFunction::ArgMin},    {"count_nonzero", ProductFunction::CountNonzero},
};
constexpr std::string_view kPair[] = {"a", "b"};
constexpr std::string_view kNormArguments[] = {"x", "ord", "axis", "keepdims"};
constexpr std::string_view kSearch[] = {"a", "axis", "out", "*", "keepdims"};
constexpr std::string_view kCount[] = {"a", "axis", "*", "keepdims"};

std::span<const std::string_view> parameters_of(ProductFunction f) {
    switch (f) {
        case ProductFunction::Dot:
        case ProductFunction::Inner:
            return kPair;
        case ProductFunction::Norm:
            return kNormArguments;
        case ProductFunction::CountNonzero:
            return kCount;
        default:
            return kSearch;
    }
}

Ref scalar_new(int type) {
    return Ref::steal(
        PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(type), 0, nullptr, nullptr, nullptr, 0, nullptr));
}

// NumPy hands out a single number as a scalar.
Ref array_of(PyObject* result) {
    if (result && PyArray_IsScalar(result, Generic)) {
        Ref scalar = Ref::steal(result);
        return Ref::steal(PyArray_FromScalar(scalar.get(), nullptr));
    }
    return Ref::steal(result);
}

// What NumPy calls for two lines of elements side by side; it looks at no errors then.
bool dot_lines(const TapeCall& call, TapeCell* r, TapeJournal&) {
    const auto* dtype = static_cast<const PyArray_Descr*>(call.self);
    const npy_intp step = PyDataType_ELSIZE(dtype);
    const int before = all_fp_errors();
    PyDataType_GetArrFuncs(dtype)->dotfunc(call.operands[0].find(r), step, call.operands[1].find(r), step,
                                           call.operands[2].find(r), call.n, nullptr);
    if (const int raised = all_fp_errors(); PYOP_UNLIKELY(raised != before)) {
        clear_all_fp_errors();
        if (before) std::feraiseexcept(before);
    }
    return true;
}

class FunctionStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        PyObject* a = inputs[first];
        PyObject* b = inputs[second];
        // Of NumPy's own numbers: others may bring functions of their own.
        if (!is_number_array(a) || !is_number_array(b)) return 0;
        Ref result;
        switch (function) {
            case ProductFunction::Dot:
                result = array_of(PyArray_MatrixProduct2(a, b, nullptr));
                break;
            case ProductFunction::Inner:
                result = array_of(PyArray_InnerProduct(a, b));
                break;
            case ProductFunction::Norm:
                result = norm(as_array(a));
                break;
            case ProductFunction::ArgMax:
                result = array_of(PyArray_ArgMax(as_array(a), axis, nullptr));
                break;
            case ProductFunction::ArgMin:
                result = array_of(PyArray_ArgMin(as_array(a), axis, nullptr));
                break;
            case ProductFunction::CountNonzero:
                result = count(as_array(a));
                break;
        }
        if (!result || !is_exact_array(result.get())) {
            PyErr_Clear();
            return 0;
        }
        results[0] = result.release();
        return 1;
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        TapeValue a = inputs[first], b = inputs[second];
        const auto is_line = [&](TapeValue& x) {
            if (x.kind != TapeValue::Block || x.ndim != 1 || x.dims[0] < 2 || !tape.readable(x) ||
                (x.dtype->type_num != NPY_DOUBLE && x.dtype->type_num != NPY_FLOAT))
                return false;
            if (x.strides[0] >= 0) return x.contiguous();
            // BLAS takes no vector that runs backwards: NumPy copies it first.
            const TapeValue backwards = x;
            x = tape.block_new(x.dtype, 1, x.dims.data());
            return x.kind == TapeValue::Block && tape.copy(x, backwards);
        };
        if (function != ProductFunction::Dot && function != ProductFunction::Inner) return false;
        if (!is_line(a) || !is_line(b) || a.dtype != b.dtype || a.dims[0] != b.dims[0]) return false;
        results[0] = tape.number_new(a.dtype);
        TapeCall call;
        tape.calls_blas();
        call.block = dot_lines;
        call.self = a.dtype;
        call.n = a.dims[0];
        call.places = {TapeBuilder::place_of(a), TapeBuilder::place_of(b), TapeBuilder::place_of(results[0])};
        return tape.call_block(std::move(call));
    }
    std::string describe(size_t) const override { return text; }

    ProductFunction function = ProductFunction::Dot;
    size_t first = 0, second = 0;
    int axis = NPY_RAVEL_AXIS;
    std::string text;

  private:
    static bool is_number_array(PyObject* o) {
        if (!is_exact_array(o)) return false;
        const int type = PyArray_TYPE(as_array(o));
        return PyTypeNum_ISNUMBER(type) || type == NPY_BOOL;
    }

    static Ref count(PyArrayObject* a) {
        const npy_intp n = PyArray_CountNonzero(a);
        Ref result = n < 0 ? Ref() : scalar_new(NPY_INTP);
        if (result) *static_cast<npy_intp*>(PyArray_DATA(as_array(result.get()))) = n;
        return result;
    }

    // The root of dot(x, x) over the elements in the order of memory, gathered: dot of a strided vector has other last
    // bits.
    static Ref norm(PyArrayObject* a) {
        const int type = PyArray_TYPE(a);
        if (type != NPY_DOUBLE && type != NPY_FLOAT) return {};
        Ref flat = PyArray_NDIM(a) == 1 && PyArray_IS_C_CONTIGUOUS(a) ? Ref::borrow(as_object(a))
                                                                      : Ref::steal(PyArray_Ravel(a, NPY_KEEPORDER));
        Ref square = flat ? array_of(PyArray_MatrixProduct2(flat.get(), flat.get(), nullptr)) : Ref();
        if (!square || !is_exact_array(square.get()) || PyArray_TYPE(as_array(square.get())) != type) return {};
        // dot looks at no errors, the root does.
        if (all_fp_errors()) clear_all_fp_errors();
        void* value = PyArray_DATA(as_array(square.get()));
        if (type == NPY_DOUBLE)
            *static_cast<double*>(value) = std::sqrt(*static_cast<double*>(value));
        else
            *static_cast<float*>(value) = std::sqrt(*static_cast<float*>(value));
        return all_fp_errors() ? Ref() : std::move(square);
    }
};

}  // namespace

int make_function_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    const auto* found = function_table<kProducts>().find(node.fn());
    CallArguments given;
    if (!found || !is_plain_call(node) || node.n_outputs() != 1 || !given.bind(node, parameters_of(found->entry)))
        return 0;
    auto made = std::make_unique<FunctionStep>(Fallback::of_node(r.g, i));
    made->function = found->entry;
    if (given[0].input < 0 || !builtin_dtype(r.g, node.inputs()[static_cast<size_t>(given[0].input)])) return 0;
    made->first = made->second = static_cast<size_t>(given[0].input);
    switch (found->entry) {
        case ProductFunction::Dot:
        case ProductFunction::Inner:
            if (given[1].input < 0) return 0;
            made->second = static_cast<size_t>(given[1].input);
            break;
        case ProductFunction::Norm:
            if (!given[1].absent_or(Py_None) || !given[2].absent_or(Py_None) || !given[3].absent_or(Py_False)) return 0;
            break;
        case ProductFunction::CountNonzero:
            if (!given[1].absent_or(Py_None) || !given[3].absent_or(Py_False)) return 0;
            break;
        default:
            if (!given[2].absent_or(Py_None) || given[4].given()) return 0;
            if (given[1].absent_or(Py_None)) break;
            if (!given[1].fixed || !PyLong_CheckExact(given[1].fixed)) return 0;
            int overflow;
            const long axis = PyLong_AsLongAndOverflow(given[1].fixed, &overflow);
            if (overflow || axis > NPY_MAXDIMS || axis < -NPY_MAXDIMS) return 0;
            made->axis = static_cast<int>(axis);
    }
    made->text = "NumPy's C function of " + std::string(found->name);
    step = std::move(made);
    return 0;
}

}  // namespace pyop
