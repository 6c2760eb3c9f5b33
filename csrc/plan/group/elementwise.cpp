// plan/group/elementwise.cpp: read ufuncs, conversions, np.where and the like as kernels and loops of NumPy.
#include "plan/group/elementwise.h"

#include <algorithm>
#include <cmath>

#include "array/native/native_kernel.h"
#include "array/protocol/scalar_operator.h"
#include "plan/group/ufunc_loops.h"
#include "plan/native_call.h"
#include "plan/steps/call_arguments.h"
#include "runtime/lazy.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// Functions of NumPy that do what a ufunc does, for the life of the process.
struct ElementwiseFunctions {
    PyObject* clip = find_below_numpy("clip");
    PyObject* round = find_below_numpy("round");
    PyObject* around = find_below_numpy("around");
    PyObject* clip_ufunc = find_below_numpy("_core.umath.clip");
    PyObject* maximum = find_below_numpy("maximum");
    PyObject* minimum = find_below_numpy("minimum");
    PyObject* rint = find_below_numpy("rint");

    bool has(PyObject* fn) const { return fn == clip || fn == round || fn == around; }
};
const ElementwiseFunctions& elementwise_functions() {
    static const ElementwiseFunctions* known = nullptr;
    if (PYOP_UNLIKELY(!known)) {
        auto made = std::make_unique<ElementwiseFunctions>();
        if (!known) known = made.release();
    }
    return *known;
}

bool is_in_place(PyObject* fn) { return reinterpret_cast<PyObject*>(Py_TYPE(fn)) == up_calls.in_place_call; }

// Whether a Python number is one of the dtype; of integers as floats those that are small, for the rest is rare.
bool is_exact_in(PyObject* number, PyArray_Descr* d) {
    if (PyLong_CheckExact(number)) {
        int overflow;
        const long value = PyLong_AsLongAndOverflow(number, &overflow);
        if (PyTypeNum_ISINTEGER(d->type_num) && !overflow) {
            const int bits = 8 * static_cast<int>(PyDataType_ELSIZE(d)) - !PyTypeNum_ISUNSIGNED(d->type_num);
            const bool least =
                value >= 0 || (!PyTypeNum_ISUNSIGNED(d->type_num) && (bits >= 63 || value >= -(1L << bits)));
            return least && (value < 0 || bits >= 63 || value < 1L << bits);
        }
        return !overflow && value <= 127 && value >= (PyTypeNum_ISUNSIGNED(d->type_num) ? 0 : -128) &&
               d->type_num != NPY_BOOL;
    }
    if (PyComplex_CheckExact(number)) return d->type_num == NPY_CDOUBLE;
    if (!PyFloat_CheckExact(number) || PyTypeNum_ISINTEGER(d->type_num) || d->type_num == NPY_BOOL) return false;
    const double value = PyFloat_AS_DOUBLE(number);
    if (d->type_num == NPY_FLOAT || d->type_num == NPY_CFLOAT)
        return static_cast<double>(static_cast<float>(value)) == value;
    return d->type_num != NPY_HALF || std::fabs(value) < 1024;
}

bool is_scalar_number(PyObject* o) { return is_python_number(o) || scalar_dtype(o); }

class Look {
  public:
    Look(const Rewrite& r, uint32_t i)
        : r_(r), i_(i), node_(r.g.node_as<PyNode>(i)), call_(std::make_shared<ElementwiseCall>()) {}

    int run(std::shared_ptr<const ElementwiseCall>& call) {
        if (is_native_kernel(node_.fn())) {
            if (look_at_native() == 1) call = std::move(call_);
            return 0;
        }
        if (node_.contract() || node_.lends() || r_.g.spec({i_, 0}).ndim < 0) return 0;
        int found;
        if (node_.fn() == numpy_where())
            found = look_at_where();
        else if (node_.fn() == ndarray_astype())
            found = look_at_astype();
        else if (is_in_place(node_.fn()))
            found = look_at_in_place();
        else if (elementwise_functions().has(node_.fn()))
            found = node_.fn() == elementwise_functions().clip ? look_at_clip() : look_at_round();
        else
            found = look_at_call();
        if (found == 1) call = std::move(call_);
        return found < 0 ? -1 : 0;
    }

  private:
    PyArray_Descr* dtype_of(Argument a) const {
        PyArray_Descr* d = r_.g.spec(node_.inputs()[static_cast<size_t>(a.input)]).descr();
        return d && is_builtin_dtype(d) ? d : nullptr;
    }

    // The call of an op that is compiled code, where nothing is left of its declaration to be checked.
    int look_at_native() {
        if (node_.stateful() || node_.form() || r_.g.spec({i_, 0}).ndim < 0) return 0;
        const NativeCode& code = *as_native_kernel(node_.fn()).code;
        call_->n_inputs = node_.inputs().size();
        if (!node_.contract() || static_cast<int>(call_->n_inputs) != code.n_in ||
            static_cast<int>(node_.n_outputs()) != code.n_operands - code.n_in || !is_kept(r_.g, node_))
            return 0;
        call_->loop = native_loop_of(node_.fn());
        if (!call_->loop) return 0;
        for (int k = 0; k < code.n_operands; ++k) call_->dtypes.push_back(call_->loop->dtype(k));
        for (size_t k = 0; k < call_->n_inputs; ++k) {
            call_->arguments.push_back({static_cast<int32_t>(k), nullptr});
            if (dtype_of(call_->arguments[k]) != call_->dtypes[k]) return 0;
        }
        call_->name = *code.name;
        call_->safe = !code.may_fail();
        return 1;
    }

    // The call of a ufunc with its arguments in order.
    int look_at_call() {
        if (!is_elementwise_ufunc(node_.fn()) || (node_.form() && node_.form()->n_keywords())) return 0;
        if (n_arguments(node_) > StridedLoop::kMaxOperands) return 0;
        for (size_t k = 0; k < n_arguments(node_); ++k) call_->arguments.push_back(argument_of(node_, k));
        const int found = look_at_ufunc(node_.fn());
        if (found != 1 || !node_.of_scalars()) return found;
        if (!same_for_scalars(call_->name, call_->dtypes[0]) || !scalars_meet_in_loop()) return 0;
        call_->name = kScalarPrefix + call_->name;
        return 1;
    }

    // `target += other` of real numbers, computed in the target's dtype, is its ufunc: a group lays its results out as
    // all that it reads lies, the target among it. (NumPy's loops for complex numbers have other last bits in place.)
    int look_at_in_place() {
        if (n_arguments(node_) != 2 || (node_.form() && node_.form()->n_keywords())) return 0;
        const Argument target = argument_of(node_, 0), other = argument_of(node_, 1);
        if (target.constant || !fits(target, other)) return 0;
        Ref ufunc = Ref::steal(PyObject_GetAttr(node_.fn(), up_attributes.ufunc));  // kept by the module
        if (!ufunc) return -1;
        if (!is_elementwise_ufunc(ufunc.get())) return 0;
        call_->arguments = {target, other};
        const int found = look_at_ufunc(ufunc.get());
        if (found != 1) return found;
        call_->in_place = true;
        PyArray_Descr* const dtype = dtype_of(target);
        return !PyTypeNum_ISCOMPLEX(dtype->type_num) && call_->name != "power" && call_->dtypes.size() == 3 &&
               call_->dtypes[0] == dtype && call_->dtypes[2] == dtype;
    }

    // Whether the target has axes, and whether nothing but it decides its shape.
    bool fits(Argument target, Argument other) const {
        const ValueSpec& to = r_.g.spec(node_.inputs()[static_cast<size_t>(target.input)]);
        if (to.ndim < 1 || to.dims != r_.g.spec({i_, 0}).dims) return false;
        if (other.constant) return true;
        const ValueSpec& from = r_.g.spec(node_.inputs()[static_cast<size_t>(other.input)]);
        if (from.ndim < 0 || from.ndim > to.ndim) return false;
        for (size_t k = 0; k < from.dims.size(); ++k)
            if (from.dims[k] != 1 && from.dims[k] != to.dims[to.dims.size() - from.dims.size() + k]) return false;
        return true;
    }

    // Whether NumPy's scalar arithmetic takes these operands: one is of the type computed in, and the others become it
    // without a word. Where that is not so it calls the ufunc, which says so in its warnings.
    bool scalars_meet_in_loop() const {
        PyArray_Descr* const d = call_->dtypes[0];
        bool any = false;
        for (size_t k = 0; k < call_->n_inputs; ++k) {
            const Argument a = call_->arguments[k];
            if (call_->dtypes[k] != d) return false;
            if (a.constant && is_python_number(a.constant)) {
                if (!is_exact_in(a.constant, d)) return false;
                continue;
            }
            PyArray_Descr* const have = a.constant ? scalar_dtype(a.constant) : dtype_of(a);
            any |= have == d;
            if (have != d && (a.constant || have->type_num == NPY_BOOL)) return false;
        }
        return any;
    }

    // np.clip does minimum or maximum where only one bound is given.
    int look_at_clip() {
        static constexpr std::string_view kParameters[] = {"a", "a_min", "a_max", "out", "*", "min", "max"};
        CallArguments given;
        if (!given.bind(node_, kParameters) || !given[3].absent_or(Py_None) || given[0].input < 0) return 0;
        const bool by_name = !given[1].given() && !given[2].given();
        const auto low = given[by_name ? 5 : 1], high = given[by_name ? 6 : 2];
        if (!by_name && (!given[1].given() || !given[2].given() || given[5].given() || given[6].given())) return 0;
        call_->arguments.push_back({given[0].input, nullptr});
        const bool has_low = !low.absent_or(Py_None), has_high = !high.absent_or(Py_None);
        if (has_low) call_->arguments.push_back({low.input, low.fixed});
        if (has_high) call_->arguments.push_back({high.input, high.fixed});
        const ElementwiseFunctions& f = elementwise_functions();
        PyObject* ufunc = has_low ? has_high ? f.clip_ufunc : f.maximum : has_high ? f.minimum : nullptr;
        return ufunc && is_elementwise_ufunc(ufunc) ? look_at_ufunc(ufunc) : 0;
    }

    // np.round to whole numbers is rint, for floating-point numbers.
    int look_at_round() {
        static constexpr std::string_view kParameters[] = {"a", "decimals", "out"};
        CallArguments given;
        if (!given.bind(node_, kParameters) || !given[2].absent_or(Py_None) || given[0].input < 0) return 0;
        if (given[1].given() && !(given[1].fixed && PyLong_CheckExact(given[1].fixed))) return 0;
        if (given[1].fixed && PyObject_IsTrue(given[1].fixed)) return 0;
        call_->arguments.push_back({given[0].input, nullptr});
        PyArray_Descr* d = dtype_of(call_->arguments[0]);
        return d && PyTypeNum_ISFLOAT(d->type_num) ? look_at_ufunc(elementwise_functions().rint) : 0;
    }

    int look_at_ufunc(PyObject* ufunc) {
        const size_t n = call_->arguments.size();
        LoopKey key{ufunc, {}};
        if (n >= key.kinds.size()) return 0;
        for (size_t k = 0; k < n; ++k) {
            const Argument a = call_->arguments[k];
            if (a.constant && is_python_number(a.constant))
                key.kinds[k] = reinterpret_cast<PyObject*>(Py_TYPE(a.constant));
            else
                key.kinds[k] = reinterpret_cast<PyObject*>(a.constant ? scalar_dtype(a.constant) : dtype_of(a));
            if (!key.kinds[k]) return 0;
        }
        const KnownLoop* known = find_loop(key, n);
        if (!known) return -1;
        if (!known->call.loop) return 0;
        const auto arguments = call_->arguments;
        *call_ = known->call;
        call_->arguments = arguments;
        if (!can_convert()) return 0;
        // To a complex scalar NumPy has a way of its own (array/loop/one_element.h).
        if (call_->n_inputs == 1 && PyTypeNum_ISCOMPLEX(call_->dtypes[0]->type_num) && !call_->arguments[0].constant &&
            r_.g.spec(node_.inputs()[static_cast<size_t>(call_->arguments[0].input)]).form == Form::Scalar)
            return 0;
        const Kernel fast =
            known->own && r_.request.fast ? find_fast(call_->name, element_of(call_->dtypes[0])) : nullptr;
        if (fast) {
            call_->kernel = fast;
            call_->operation = Operation::None;
            call_->element = Element::None;
        }
        return 1;
    }

    int look_at_where() {
        if (n_arguments(node_) != 3 || (node_.form() && node_.form()->n_keywords())) return 0;
        PyArray_Descr* d = r_.g.spec({i_, 0}).descr();
        const Element e = d && is_builtin_dtype(d) ? element_of(d) : Element::None;
        const Argument condition = argument_of(node_, 0);
        if (e == Element::None || condition.constant) return 0;
        PyArray_Descr* test = dtype_of(condition);
        call_->kernel = find_kernel(Operation::Where, e);
        if (!call_->kernel || !test || test->type_num != NPY_BOOL) return 0;
        for (size_t k = 1; k < 3; ++k)
            if (const Argument a = argument_of(node_, k); a.constant && !is_scalar_number(a.constant)) return 0;
        call_->operation = Operation::Where;
        call_->element = e;
        call_->n_inputs = 3;
        call_->dtypes = {test, d, d, d};
        call_->name = "where";
        for (size_t k = 0; k < 3; ++k) call_->arguments.push_back(argument_of(node_, k));
        return can_convert() ? 1 : 0;
    }

    // x.astype(dtype, "K", casting, subok, copy) where the conversion is one that kernels know.
    int look_at_astype() {
        if (node_.inputs().size() != 1 || !node_.form() || node_.form()->n_keywords()) return 0;
        const Argument array = argument_of(node_, 0), order = argument_of(node_, 2);
        if (array.constant || !order.constant || !PyUnicode_Check(order.constant) ||
            PyUnicode_CompareWithASCIIString(order.constant, "K") != 0)
            return 0;
        PyArray_Descr *from = dtype_of(array), *to = r_.g.spec({i_, 0}).descr();
        if (!from || !to || from == to || !is_builtin_dtype(to)) return 0;
        const Element a = element_of(from), b = element_of(to);
        if (a == Element::None || b == Element::None) return 0;
        call_->kernel = find_cast(a, b);
        call_->n_inputs = 1;
        call_->dtypes = {from, to};
        call_->arguments = {array};
        call_->name = "cast";
        return call_->kernel ? 1 : 0;
    }

    // Arrays that must be converted for the loop are, block by block, if kernels can do it.
    bool can_convert() const {
        for (size_t k = 0; k < call_->n_inputs; ++k) {
            const Argument a = call_->arguments[k];
            if (a.constant) continue;
            PyArray_Descr *have = dtype_of(a), *want = call_->dtypes[k];
            if (!have) return false;
            if (have == want) continue;
            if (!r_.request.passes.has(Pass::Casts)) return false;
            const Element from = element_of(have), to = element_of(want);
            if (from == Element::None || to == Element::None || !find_cast(from, to)) return false;
        }
        return true;
    }

    const Rewrite& r_;
    const uint32_t i_;
    const PyNode& node_;
    std::shared_ptr<ElementwiseCall> call_;
};

}  // namespace

bool is_numpy_round(PyObject* fn) {
    return fn == elementwise_functions().round || fn == elementwise_functions().around;
}

PyObject* numpy_where() {
    static constinit Lazy function;
    return function.get([] { return find_below_numpy("where"); });
}

PyObject* ndarray_astype() {
    static constinit Lazy method;
    return method.get([] { return PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyArray_Type), "astype"); });
}

Element element_of(PyArray_Descr* d) {
    const bool is_signed = PyTypeNum_ISSIGNED(d->type_num);
    if (d->type_num == NPY_BOOL) return Element::Bool;
    if (PyTypeNum_ISINTEGER(d->type_num)) {
        switch (PyDataType_ELSIZE(d)) {
            case 1:
                return is_signed ? Element::I8 : Element::U8;
            case 2:
                return is_signed ? Element::I16 : Element::U16;
            case 4:
                return is_signed ? Element::I32 : Element::U32;
            case 8:
                return is_signed ? Element::I64 : Element::U64;
            default:
                return Element::None;
        }
    }
    switch (d->type_num) {
        case NPY_FLOAT:
            return Element::F32;
        case NPY_DOUBLE:
            return Element::F64;
        case NPY_CFLOAT:
            return Element::C64;
        case NPY_CDOUBLE:
            return Element::C128;
        default:
            return Element::None;
    }
}

bool may_be_elementwise(PyObject* fn) {
    return is_native_kernel(fn) || is_elementwise_ufunc(fn) || fn == numpy_where() || fn == ndarray_astype() ||
           is_in_place(fn) || elementwise_functions().has(fn);
}

int elementwise_call(const Rewrite& r, uint32_t node, std::shared_ptr<const ElementwiseCall>& call) {
    return Look(r, node).run(call);
}

}  // namespace pyop
