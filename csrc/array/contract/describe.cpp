// array/contract/describe.cpp: word dtypes, sizes, specs and bindings for errors.
#include "array/contract/describe.h"

#include "runtime/errors.h"

namespace pyop {

std::string shape_text(int ndim, const npy_intp* dims) {
    std::string text = "[";
    for (int d = 0; d < ndim; ++d) text += (d ? "," : "") + std::to_string(dims[d]);
    return text + "]";
}

namespace {

std::string str_of(PyObject* o) {
    Ref text = Ref::steal(PyObject_Str(o));
    const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (utf8) return printable(utf8);
    PyErr_Clear();
    return "?";
}

std::string expr_text(const Contract& c, const std::vector<ExprStep>& program) {
    struct Part {
        std::string text;
        int binding;  // how tightly its operator binds: 1 for + and -, 2 for * and //, 3 for a name or number
    };
    std::vector<Part> stack;
    for (const ExprStep& step : program) {
        if (step.op == ExprStep::Const)
            stack.push_back({std::to_string(step.value), step.value < 0 ? 0 : 3});
        else if (step.op == ExprStep::Var)
            stack.push_back({(*c.names)[static_cast<size_t>(step.value)], 3});
        else {
            static const char* const symbols[] = {"", "", "+", "-", "*", "//"};
            const int binding = step.op == ExprStep::Add || step.op == ExprStep::Sub ? 1 : 2;
            const auto side = [](const Part& p, bool enclose) { return enclose ? "(" + p.text + ")" : p.text; };
            const Part right = stack.back();
            stack.pop_back();
            Part& left = stack.back();
            const bool regroups = step.op != ExprStep::Add && right.binding == binding;  // a-(b-c)
            left.text = side(left, left.binding < binding) + symbols[step.op] +
                        side(right, right.binding < binding || regroups);
            left.binding = binding;
        }
    }
    return stack.back().text;
}

std::string dim_text(const Contract& c, const DimSpec& dim) {
    const auto name = [&] { return (*c.names)[static_cast<size_t>(dim.name)]; };
    switch (dim.kind) {
        case DimKind::Fixed:
            return std::to_string(dim.value);
        case DimKind::Name:
            return name();
        case DimKind::Any:
            return "_";
        case DimKind::Late:
            return dim.name < 0 ? "_" : name() + "!";
        case DimKind::Optional:
            return name() + "?";
        case DimKind::Broadcast:
            return name() + "|1";
        case DimKind::Expr:
            return expr_text(c, dim.expr);
        case DimKind::Variadic:
            return dim.name < 0 ? "..." : "*" + (*c.variadics)[static_cast<size_t>(dim.name)];
        case DimKind::Solve: {
            std::string text = dim.value == 1 ? name() : std::to_string(dim.value) + "*" + name();
            if (dim.constant > 0) text += "+" + std::to_string(dim.constant);
            if (dim.constant < 0) text += std::to_string(dim.constant);
            return text;
        }
    }
    return "?";
}

}  // namespace

std::string dtype_text(PyArray_Descr* descr) {
    SavedError keep;
    if (descr->type_num == NPY_UNICODE) return "str";
    if (PyDataType_HASFIELDS(descr)) return str_of(reinterpret_cast<PyObject*>(descr));
    Ref name = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(descr), "name"));
    if (!name) return "?";
    std::string text = str_of(name.get());
    if (descr->byteorder == '>' || (descr->byteorder == '<' && NPY_BYTE_ORDER == NPY_BIG_ENDIAN))
        text += " (foreign byte order)";
    return text;
}

std::string array_text(PyObject* o) {
    if (!PyArray_Check(o)) return type_name(o);
    PyArrayObject* a = as_array(o);
    return dtype_text(PyArray_DESCR(a)) + shape_text(PyArray_NDIM(a), PyArray_DIMS(a));
}

std::string spec_text(const Contract& c, const ArraySpec& spec) {
    if (spec.like >= 0) return "like argument " + std::to_string(spec.like);
    std::string text = spec.dtype          ? dtype_text(spec.descr())
                       : spec.typevar >= 0 ? (*c.typevars)[static_cast<size_t>(spec.typevar)].name
                                           : std::string("_");
    if (!spec.rank_known) return text;
    text += "[";
    for (size_t d = 0; d < spec.dims.size(); ++d) text += (d ? "," : "") + dim_text(c, spec.dims[d]);
    return text + "]";
}

std::string bindings_text(const Contract& c, const Bindings& b) {
    std::string text;
    const auto add = [&](const std::string& name, const std::string& value) {
        text += (text.empty() ? " (" : ", ") + name + " = " + value;
    };
    for (int i = 0; i < c.n_names; ++i)
        if (b.sizes[i] >= 0) add((*c.names)[static_cast<size_t>(i)], std::to_string(b.sizes[i]));
    for (int i = 0; i < c.n_variadics; ++i)
        if (b.variadics[i].ndim >= 0)
            add("*" + (*c.variadics)[static_cast<size_t>(i)], shape_text(b.variadics[i].ndim, b.variadics[i].dims));
    for (int i = 0; i < c.n_typevars; ++i)
        if (b.types[i]) add((*c.typevars)[static_cast<size_t>(i)].name, dtype_text(b.type(i)));
    return text.empty() ? text : text + ")";
}

std::string tf_dtype_text(PyArray_Descr* descr) {
    switch (descr->type_num) {
        case NPY_HALF:
            return "half";
        case NPY_FLOAT:
            return "float";
        case NPY_DOUBLE:
            return "double";
        case NPY_OBJECT:
        case NPY_STRING:
        case NPY_UNICODE:
            return "string";
        default:
            return dtype_text(descr);
    }
}

}  // namespace pyop
