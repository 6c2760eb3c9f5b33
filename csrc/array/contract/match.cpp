// array/contract/match.cpp: match beyond the plain specs: expressions, variadics, type variables, gufunc cores.
#include "array/contract/match.h"

#include <algorithm>  // std::equal, std::copy_n
#include <initializer_list>
#include <string_view>

namespace pyop {

bool dtype_fits(const ArraySpec& spec, PyArray_Descr* descr) {
    if (!spec.dtype) return true;
    if (spec.any_length) return descr->type_num == spec.descr()->type_num;
    return PyArray_EquivTypes(descr, spec.descr());
}

namespace {

// "bfloat16" of ml_dtypes.bfloat16.
bool is_named(PyArray_Descr* descr, std::initializer_list<std::string_view> beginnings) {
    if (descr->type_num < NPY_USERDEF || !descr->typeobj) return false;
    std::string_view name = descr->typeobj->tp_name;
    if (const size_t dot = name.rfind('.'); dot != name.npos) name.remove_prefix(dot + 1);
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view text) { return name.substr(0, text.size()) == text; });
}

}  // namespace

bool is_of_kind(PyArray_Descr* descr, TypeKind kind) {
    const int type = descr->type_num;
    // NumPy's timedelta64 is a signed integer among its types, and no number to whoever declares one.
    const bool is_signed = PyTypeNum_ISSIGNED(type) && PyTypeNum_ISINTEGER(type);
    const bool is_unsigned = PyTypeNum_ISUNSIGNED(type);
    const bool floating = PyTypeNum_ISFLOAT(type), complex = PyTypeNum_ISCOMPLEX(type);
    switch (kind) {
        case TypeKind::Any:
            return true;
        case TypeKind::SignedInteger:
            return is_signed || is_named(descr, {"int"});
        case TypeKind::UnsignedInteger:
            return is_unsigned || is_named(descr, {"uint"});
        case TypeKind::Integer:
            return is_signed || is_unsigned || is_named(descr, {"int", "uint"});
        case TypeKind::Floating:
            return floating || is_named(descr, {"float", "bfloat"});
        case TypeKind::ComplexFloating:
            return complex || is_named(descr, {"complex", "bcomplex"});
        case TypeKind::Inexact:
            return floating || complex || is_named(descr, {"float", "bfloat", "complex", "bcomplex"});
        case TypeKind::Number:
            return is_signed || is_unsigned || floating || complex ||
                   is_named(descr, {"int", "uint", "float", "bfloat", "complex", "bcomplex"});
    }
    return false;
}

npy_intp eval_expr(const std::vector<ExprStep>& program, const Bindings& b) {
    std::vector<npy_intp> stack;
    for (const ExprStep& step : program) {
        if (step.op == ExprStep::Const) {
            stack.push_back(step.value);
            continue;
        }
        if (step.op == ExprStep::Var) {
            if (b.sizes[step.value] < 0) return kUnbound;
            stack.push_back(b.sizes[step.value]);
            continue;
        }
        const npy_intp right = stack.back();
        stack.pop_back();
        npy_intp& left = stack.back();
        bool overflow = false;
        switch (step.op) {
            case ExprStep::Add:
                overflow = __builtin_add_overflow(left, right, &left);
                break;
            case ExprStep::Sub:
                overflow = __builtin_sub_overflow(left, right, &left);
                break;
            case ExprStep::Mul:
                overflow = __builtin_mul_overflow(left, right, &left);
                break;
            default: {
                if (right == 0) return kUnbound;
                const npy_intp quotient = left / right;
                left = quotient - ((left % right != 0) && ((left < 0) != (right < 0)));
            }
        }
        if (overflow) return kUnbound;
    }
    return stack.back() < 0 ? kUnbound : stack.back();
}

namespace {

bool bind_name(Bindings& b, int32_t name, npy_intp size) {
    if (name < 0) return true;
    if (b.sizes[name] == kUnbound) b.sizes[name] = size;
    return b.sizes[name] == size;
}

bool match_dim(const DimSpec& dim, npy_intp size, Bindings& b, bool output = false) {
    switch (dim.kind) {
        case DimKind::Fixed:
            return size == dim.value;
        case DimKind::Name:
        case DimKind::Late:
        case DimKind::Optional:
            return bind_name(b, dim.name, size);
        case DimKind::Broadcast:
            return size == 1 || bind_name(b, dim.name, size);
        case DimKind::Any:
            return true;
        case DimKind::Expr: {
            // Unbound in an input means: a later argument binds the name; check_input_exprs comes back to it.
            const npy_intp want = eval_expr(dim.expr, b);
            return want == size || (want == kUnbound && !output);
        }
        case DimKind::Solve: {
            if (b.sizes[dim.name] == kUnbound) {
                const npy_intp rest = size - dim.constant;
                if (rest % dim.value != 0 || rest / dim.value < 0) return false;
                b.sizes[dim.name] = rest / dim.value;
            }
            return dim.value * b.sizes[dim.name] + dim.constant == size;
        }
        case DimKind::Variadic:
            return true;
    }
    return false;
}

bool match_variadic(const DimSpec& dim, int ndim, const npy_intp* dims, Bindings& b) {
    if (dim.name < 0) return true;
    BoundVariadic& bound = b.variadics[dim.name];
    if (bound.ndim < 0) {
        bound.ndim = ndim;
        std::copy_n(dims, ndim, bound.dims);
    }
    return bound.ndim == ndim && std::equal(dims, dims + ndim, bound.dims);
}

bool match_type(const ArraySpec& spec, PyArray_Descr* descr, Bindings& b) {
    if (spec.typevar < 0) return dtype_fits(spec, descr);
    Ref& bound = b.types[spec.typevar];
    if (!bound) {
        if (!is_of_kind(descr, b.kinds[spec.typevar])) return false;
        bound = Ref::borrow(reinterpret_cast<PyObject*>(descr));
    }
    return b.type(spec.typevar) == descr || PyArray_EquivTypes(b.type(spec.typevar), descr);
}

bool match_shape(const ArraySpec& spec, int ndim, const npy_intp* dims, Bindings& b) {
    if (!spec.rank_known) return true;
    const auto absent = [&](const DimSpec& dim) {
        return dim.kind == DimKind::Optional && b.sizes[dim.name] == kAbsent;
    };
    int extra = ndim - spec.min_ndim();
    for (const DimSpec& dim : spec.dims) extra += absent(dim);
    if (extra < 0 || (extra > 0 && spec.variadic < 0)) return false;
    int d = 0;
    for (const DimSpec& dim : spec.dims) {
        if (absent(dim)) continue;
        if (dim.kind == DimKind::Variadic) {
            if (!match_variadic(dim, extra, dims + d, b)) return false;
            d += extra;
        } else if (!match_dim(dim, dims[d++], b, spec.output)) {
            return false;
        }
    }
    return true;
}

}  // namespace

void bind_likes(const Contract& c, PyArrayObject* const* inputs, Bindings& b) {
    for (const ArraySpec& spec : *c.outputs) {
        if (spec.like < 0 || b.like(spec.like)) continue;
        PyArrayObject* model = inputs[spec.like];
        b.likes.push_back({spec.like,
                           Ref::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(model))),
                           {PyArray_DIMS(model), PyArray_DIMS(model) + PyArray_NDIM(model)}});
    }
}

bool match_general(const ArraySpec& spec, PyArrayObject* a, Bindings& b) {
    if (spec.like >= 0) {
        const BoundLike* model = b.like(spec.like);
        return !model ||
               (PyArray_EquivTypes(model->descr(), PyArray_DESCR(a)) &&
                std::equal(model->dims.begin(), model->dims.end(), PyArray_DIMS(a), PyArray_DIMS(a) + PyArray_NDIM(a)));
    }
    return match_type(spec, PyArray_DESCR(a), b) && match_shape(spec, PyArray_NDIM(a), PyArray_DIMS(a), b);
}

Py_ssize_t check_input_exprs(const Contract& c, PyArrayObject* const* arrays, const Bindings& b) {
    for (size_t k = 0; k < c.inputs->size(); ++k) {
        const ArraySpec& spec = (*c.inputs)[k];
        if (!spec.rank_known) continue;
        const int extra = PyArray_NDIM(arrays[k]) - spec.min_ndim();
        int d = 0;
        for (const DimSpec& dim : spec.dims) {
            if (dim.kind == DimKind::Variadic)
                d += extra;
            else if (const npy_intp size = PyArray_DIM(arrays[k], d++);
                     dim.kind == DimKind::Expr && eval_expr(dim.expr, b) != size)
                return static_cast<Py_ssize_t>(k);
        }
    }
    return -1;
}

int core_ndim(const ArraySpec& spec, const Bindings& b) {
    int n = 0;
    for (const DimSpec& dim : spec.dims) n += !(dim.kind == DimKind::Optional && b.sizes[dim.name] == kAbsent);
    return n;
}

Py_ssize_t match_gufunc(const Contract& c, PyArrayObject* const* arrays, Bindings& b, LoopShape& loop) {
    const size_t n = c.inputs->size();
    // An operand with too few dimensions lacks its optional ones, and then nobody has them.
    for (size_t k = 0; k < n; ++k) {
        const ArraySpec& spec = (*c.inputs)[k];
        if (PyArray_NDIM(arrays[k]) >= core_ndim(spec, b)) continue;
        for (const DimSpec& dim : spec.dims)
            if (dim.kind == DimKind::Optional) b.sizes[dim.name] = kAbsent;
    }
    loop.ndim = 0;
    for (size_t k = 0; k < n; ++k)
        loop.ndim = std::max(loop.ndim, PyArray_NDIM(arrays[k]) - core_ndim((*c.inputs)[k], b));
    std::fill_n(loop.dims, loop.ndim, 1);
    for (size_t k = 0; k < n; ++k) {
        const ArraySpec& spec = (*c.inputs)[k];
        const int outer = PyArray_NDIM(arrays[k]) - core_ndim(spec, b);
        if (outer < 0 || !match_type(spec, PyArray_DESCR(arrays[k]), b)) return static_cast<Py_ssize_t>(k);
        const npy_intp* dims = PyArray_DIMS(arrays[k]);
        for (int d = 0; d < outer; ++d) {
            npy_intp& bound = loop.dims[loop.ndim - outer + d];
            if (bound == 1)
                bound = dims[d];
            else if (dims[d] != 1 && dims[d] != bound)
                return static_cast<Py_ssize_t>(k);
        }
        int d = outer;
        for (const DimSpec& dim : spec.dims) {
            if (dim.kind == DimKind::Optional && b.sizes[dim.name] == kAbsent) continue;
            if (!match_dim(dim, dims[d++], b)) return static_cast<Py_ssize_t>(k);
        }
    }
    // A broadcastable dimension that was 1 everywhere is 1.
    for (const ArraySpec& spec : *c.inputs)
        for (const DimSpec& dim : spec.dims)
            if (dim.kind == DimKind::Broadcast && b.sizes[dim.name] == kUnbound) b.sizes[dim.name] = 1;
    return -1;
}

int resolve_output(const ArraySpec& spec, const Bindings& b, npy_intp* dims, PyArray_Descr** descr) {
    if (spec.like >= 0) {
        const BoundLike& model = *b.like(spec.like);
        *descr = model.descr();
        std::copy(model.dims.begin(), model.dims.end(), dims);
        return static_cast<int>(model.dims.size());
    }
    *descr = spec.typevar >= 0 ? b.type(spec.typevar) : spec.descr();
    if (!spec.rank_known) return -1;
    int ndim = 0;
    for (const DimSpec& dim : spec.dims) {
        npy_intp size = kUnbound;
        switch (dim.kind) {
            case DimKind::Fixed:
                size = dim.value;
                break;
            case DimKind::Optional:
                if (b.sizes[dim.name] == kAbsent) continue;
                [[fallthrough]];
            case DimKind::Name:
            case DimKind::Broadcast:
                size = b.sizes[dim.name];
                break;
            case DimKind::Late:
                size = dim.name >= 0 ? b.sizes[dim.name] : kUnbound;
                break;
            case DimKind::Expr:
                size = eval_expr(dim.expr, b);
                break;
            case DimKind::Solve:
                if (b.sizes[dim.name] >= 0) size = dim.value * b.sizes[dim.name] + dim.constant;
                break;
            case DimKind::Any:
                break;
            case DimKind::Variadic: {
                if (dim.name < 0 || b.variadics[dim.name].ndim < 0) return -1;
                const BoundVariadic& v = b.variadics[dim.name];
                if (ndim + v.ndim > NPY_MAXDIMS) return -1;
                std::copy_n(v.dims, v.ndim, dims + ndim);
                ndim += v.ndim;
                continue;
            }
        }
        if (size < 0 || ndim >= NPY_MAXDIMS) return -1;
        dims[ndim++] = size;
    }
    return ndim;
}

}  // namespace pyop
