// array/contract/contract.cpp: define the type Contract, and read the encoding of Signature into it.
#include "array/contract/contract.h"

#include <memory>   // std::unique_ptr
#include <utility>  // std::pair

#include "runtime/errors.h"

namespace pyop {

PyTypeObject* contract_type = nullptr;

namespace {

// The encoding comes from our own Python code, so a malformed one is a bug there: a short message will do.
int bad_encoding(const char* what) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "malformed contract encoding: %s", what);
    return -1;
}

bool index_in(long value, size_t size) { return value >= -1 && value < static_cast<long>(size); }

int parse_expr(PyObject* program, size_t n_names, std::vector<ExprStep>& out) {
    if (!PyTuple_Check(program)) return bad_encoding("expression");
    int depth = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(program); ++i) {
        long op, value;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(program, i), "ll", &op, &value)) return -1;
        if (op < ExprStep::Const || op > ExprStep::FloorDiv) return bad_encoding("operation");
        if (op == ExprStep::Var && (value < 0 || !index_in(value, n_names))) return bad_encoding("name index");
        depth += op <= ExprStep::Var ? 1 : -1;
        if (depth < 1) return bad_encoding("expression stack");
        out.push_back({static_cast<ExprStep::Op>(op), value});
    }
    return depth == 1 ? 0 : bad_encoding("expression stack");
}

int parse_dim(PyObject* item, size_t n_names, size_t n_variadics, DimSpec& dim) {
    int kind;
    PyObject* payload;
    if (!PyArg_ParseTuple(item, "iO", &kind, &payload)) return -1;
    if (kind < 0 || kind > static_cast<int>(DimKind::Broadcast)) return bad_encoding("dim kind");
    dim.kind = static_cast<DimKind>(kind);
    switch (dim.kind) {
        case DimKind::Any:
            return 0;
        case DimKind::Expr:
            return parse_expr(payload, n_names, dim.expr);
        case DimKind::Solve: {
            long name, coefficient, constant;
            if (!PyArg_ParseTuple(payload, "lll", &name, &coefficient, &constant)) return -1;
            if (name < 0 || !index_in(name, n_names) || coefficient == 0) return bad_encoding("solve");
            dim.name = static_cast<int32_t>(name);
            dim.value = coefficient;
            dim.constant = constant;
            return 0;
        }
        default:
            break;
    }
    const long value = PyLong_AsLong(payload);
    if (value == -1 && PyErr_Occurred()) return -1;
    if (dim.kind == DimKind::Fixed) {
        dim.value = value;
        return value >= 0 ? 0 : bad_encoding("size");
    }
    const size_t limit = dim.kind == DimKind::Variadic ? n_variadics : n_names;
    const bool may_be_anonymous = dim.kind == DimKind::Variadic || dim.kind == DimKind::Late;
    if (!index_in(value, limit) || (value < 0 && !may_be_anonymous)) return bad_encoding("name index");
    dim.name = static_cast<int32_t>(value);
    return 0;
}

// A spec is plain when the inline matcher can decide it.
void classify(ArraySpec& spec) {
    if (spec.typevar >= 0 || spec.like >= 0 || spec.any_length) return;
    for (const DimSpec& dim : spec.dims) {
        if (dim.kind == DimKind::Fixed)
            spec.plain_dims.push_back(dim.value);
        else if (dim.kind == DimKind::Any)
            spec.plain_dims.push_back(-1);
        else if (dim.kind == DimKind::Name)
            spec.plain_dims.push_back(-2 - dim.name);
        else
            return;
    }
    spec.plain_ndim = spec.rank_known ? static_cast<int>(spec.dims.size()) : -1;
    spec.plain = true;
}

int parse_spec(PyObject* item, size_t n_names, size_t n_typevars, size_t n_variadics, size_t n_inputs,
               ArraySpec& spec) {
    PyObject *dtype, *dims;
    long typevar, like;
    if (!PyArg_ParseTuple(item, "OlOl", &dtype, &typevar, &dims, &like)) return -1;
    if (!index_in(typevar, n_typevars) || !index_in(like, n_inputs)) return bad_encoding("index");
    spec.typevar = static_cast<int32_t>(typevar);
    spec.like = static_cast<int32_t>(like);
    if (dtype != Py_None) {
        if (!PyArray_DescrCheck(dtype)) return bad_encoding("dtype");
        spec.dtype = Ref::borrow(dtype);
        auto* d = reinterpret_cast<PyArray_Descr*>(dtype);
        spec.any_length = PyDataType_ISSTRING(d) && PyDataType_ELSIZE(d) == 0;
    }
    if (dims != Py_None) {
        if (!PyTuple_Check(dims)) return bad_encoding("dims");
        spec.rank_known = true;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dims); ++i) {
            DimSpec& dim = spec.dims.emplace_back();
            if (parse_dim(PyTuple_GET_ITEM(dims, i), n_names, n_variadics, dim) < 0) return -1;
            if (dim.kind == DimKind::Variadic) {
                if (spec.variadic >= 0) return bad_encoding("two variadics");
                spec.variadic = static_cast<int16_t>(i);
            }
        }
    }
    classify(spec);
    return 0;
}

int parse_specs(PyObject* tuple, const Contract& c, size_t n_inputs, std::vector<ArraySpec>& specs) {
    if (!PyTuple_Check(tuple)) return bad_encoding("specs");
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    specs.resize(static_cast<size_t>(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (parse_spec(PyTuple_GET_ITEM(tuple, i), static_cast<size_t>(c.n_names), static_cast<size_t>(c.n_typevars),
                       static_cast<size_t>(c.n_variadics), n_inputs, specs[static_cast<size_t>(i)]) < 0)
            return -1;
    }
    return 0;
}

int parse_names(PyObject* tuple, int limit, const char* what, std::vector<std::string>& names) {
    if (!PyTuple_Check(tuple)) return bad_encoding("names");
    if (PyTuple_GET_SIZE(tuple) > limit) {
        PyErr_Format(PyExc_ValueError, "a declaration may use at most %d %s, this one has %zd", limit, what,
                     PyTuple_GET_SIZE(tuple));
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
        const char* text = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple, i));
        if (!text) return -1;
        names.emplace_back(text);
    }
    return 0;
}

TypeKind kind_named(const std::string& name) {
    static constexpr std::pair<const char*, TypeKind> kinds[] = {
        {"number", TypeKind::Number},
        {"integer", TypeKind::Integer},
        {"signedinteger", TypeKind::SignedInteger},
        {"unsignedinteger", TypeKind::UnsignedInteger},
        {"inexact", TypeKind::Inexact},
        {"floating", TypeKind::Floating},
        {"complexfloating", TypeKind::ComplexFloating},
    };
    for (const auto& [text, kind] : kinds)
        if (name == text) return kind;
    return TypeKind::Any;
}

// What else a declaration may say of its arguments.
int read_taking(Contract& c, PyObject* encoded) {
    PyObject *casting = PyDict_GetItemString(encoded, "casting"), *device = PyDict_GetItemString(encoded, "any_device");
    if (casting && !PyArray_CastingConverter(casting, &c.casting)) return -1;
    c.any_device = device && PyObject_IsTrue(device) == 1;
    return 0;
}

int fill(Contract& c, PyObject* encoded, PyObject* mutates) {
    PyObject *inputs = PyDict_GetItemString(encoded, "inputs"), *outputs = PyDict_GetItemString(encoded, "outputs"),
             *names = PyDict_GetItemString(encoded, "names"), *typevars = PyDict_GetItemString(encoded, "typevars"),
             *variadics = PyDict_GetItemString(encoded, "variadics"), *gufunc = PyDict_GetItemString(encoded, "gufunc");
    if (!inputs || !outputs || !names || !typevars || !variadics || !gufunc) return bad_encoding("missing key");
    std::vector<std::string> typevar_names;
    if (parse_names(names, Contract::kMaxNames, "names of sizes", *c.names) < 0 ||
        parse_names(typevars, Contract::kMaxTypeVars, "type variables", typevar_names) < 0 ||
        parse_names(variadics, Contract::kMaxVariadics, "variadic names", *c.variadics) < 0 ||
        read_taking(c, encoded) < 0)
        return -1;
    for (const std::string& name : typevar_names) c.typevars->push_back({name, kind_named(name)});
    c.n_names = static_cast<int32_t>(c.names->size());
    c.n_typevars = static_cast<int32_t>(typevar_names.size());
    c.n_variadics = static_cast<int32_t>(c.variadics->size());
    c.gufunc = PyObject_IsTrue(gufunc) == 1;
    c.inputs_declared = inputs != Py_None;
    // `like` may name an input whose spec is not declared: only its position counts then.
    const size_t n_like = c.inputs_declared ? static_cast<size_t>(PyObject_Size(inputs)) : 64;
    if (c.inputs_declared && parse_specs(inputs, c, n_like, *c.inputs) < 0) return -1;
    if (parse_specs(outputs, c, n_like, *c.outputs) < 0) return -1;
    for (ArraySpec& spec : *c.outputs) spec.output = true;
    bool plain = !c.gufunc;
    for (const ArraySpec& spec : *c.inputs) {
        plain = plain && spec.plain;
        for (const DimSpec& dim : spec.dims) c.has_input_exprs |= dim.kind == DimKind::Expr;
    }
    for (const ArraySpec& spec : *c.outputs) plain = plain && spec.plain;
    c.plain = plain && c.form == ResultForm::Single && c.outputs->size() == 1 && c.out_mode == OutMode::None &&
              !c.abstract && !c.text_as_utf8 && !c.any_device;
    if (mutates != Py_None) {
        const unsigned long long mask = PyLong_AsUnsignedLongLong(mutates);
        if (PyErr_Occurred()) return -1;
        c.mutates = mask;
        c.plain = c.plain && mask == 0;
    }
    return 0;
}

PyObject* contract_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"encoded",      "form",     "tree",      "tree_paths", "mutates", "out_mode",
                                     "text_as_utf8", "abstract", "signature", "gradient",   nullptr};
    PyObject *encoded, *tree = Py_None, *paths = Py_None, *mutates = Py_None, *abstract = Py_None, *signature = Py_None,
                       *gradient = Py_None;
    int form = 0, out_mode = 0, text = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|iOOOipOOO", const_cast<char**>(keywords), &PyDict_Type, &encoded,
                                     &form, &tree, &paths, &mutates, &out_mode, &text, &abstract, &signature,
                                     &gradient))
        return nullptr;
    if (form < 0 || form > static_cast<int>(ResultForm::Tree) || out_mode < 0 ||
        out_mode > static_cast<int>(OutMode::Required)) {
        bad_encoding("form");
        return nullptr;
    }
    Ref self = Ref::steal(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    auto& c = *reinterpret_cast<Contract*>(self.get());
    c.inputs = new std::vector<ArraySpec>;
    c.outputs = new std::vector<ArraySpec>;
    c.names = new std::vector<std::string>;
    c.variadics = new std::vector<std::string>;
    c.typevars = new std::vector<TypeVar>;
    c.form = static_cast<ResultForm>(form);
    c.out_mode = static_cast<OutMode>(out_mode);
    c.text_as_utf8 = text != 0;
    const auto optional = [](PyObject* o) { return o == Py_None ? nullptr : Py_NewRef(o); };
    c.tree = optional(tree);
    c.tree_paths = optional(paths);
    c.abstract = optional(abstract);
    c.signature = optional(signature);
    c.gradient = optional(gradient);
    if (fill(c, encoded, mutates) < 0) return nullptr;
    return self.release();
}

int contract_traverse(PyObject* self, visitproc visit, void* arg) {
    auto& c = *reinterpret_cast<Contract*>(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(c.tree);
    Py_VISIT(c.tree_paths);
    Py_VISIT(c.abstract);
    Py_VISIT(c.signature);
    Py_VISIT(c.gradient);
    return 0;
}

int contract_clear(PyObject* self) {
    // Only these can close a cycle (a function that refers to its op); the rest is plain data that a
    // call in flight may still read.
    Py_CLEAR(reinterpret_cast<Contract*>(self)->abstract);
    Py_CLEAR(reinterpret_cast<Contract*>(self)->gradient);
    return 0;
}

void contract_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    auto& c = *reinterpret_cast<Contract*>(self);
    delete c.inputs;
    delete c.outputs;
    delete c.names;
    delete c.variadics;
    delete c.typevars;
    Py_CLEAR(c.tree);
    Py_CLEAR(c.tree_paths);
    Py_CLEAR(c.abstract);
    Py_CLEAR(c.signature);
    Py_CLEAR(c.gradient);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* contract_signature(PyObject* self, void*) {
    PyObject* s = reinterpret_cast<Contract*>(self)->signature;
    return Py_NewRef(s ? s : Py_None);
}

PyObject* contract_gradient(PyObject* self, void*) {
    PyObject* g = reinterpret_cast<Contract*>(self)->gradient;
    return Py_NewRef(g ? g : Py_None);
}

PyObject* contract_n_outputs(PyObject* self, void*) {
    return PyLong_FromSsize_t(reinterpret_cast<Contract*>(self)->n_out());
}

PyObject* contract_mutates(PyObject* self, void*) {
    return PyLong_FromUnsignedLongLong(reinterpret_cast<Contract*>(self)->mutates);
}

// What contracts.new_contract made it from, for pickling: (form, mutates, out_mode, text_as_utf8, abstract).
PyObject* contract_parts(PyObject* self, void*) {
    const auto& c = *reinterpret_cast<Contract*>(self);
    return Py_BuildValue("(iKiOO)", static_cast<int>(c.form), static_cast<unsigned long long>(c.mutates),
                         static_cast<int>(c.out_mode), c.text_as_utf8 ? Py_True : Py_False,
                         c.abstract ? c.abstract : Py_None);
}

PyGetSetDef contract_getset[] = {
    {"_parts", contract_parts, nullptr, "(form, mutates, out_mode, text_as_utf8, abstract), for pickling.", nullptr},
    {"gradient", contract_gradient, nullptr,
     "Return how derivatives pass through the function; None if it does not say.", nullptr},
    {"mutates", contract_mutates, nullptr, "Bit k: the function writes to input k.", nullptr},
    {"signature", contract_signature, nullptr, "The Signature this contract was made from.", nullptr},
    {"n_outputs", contract_n_outputs, nullptr, "Return how many arrays the function returns.", nullptr},
    {},
};

PyType_Slot contract_slots[] = {
    {Py_tp_doc, const_cast<char*>("What a function declares, in the form that a call checks.")},
    {Py_tp_new, reinterpret_cast<void*>(contract_new)},
    {Py_tp_traverse, reinterpret_cast<void*>(contract_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(contract_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(contract_dealloc)},
    {Py_tp_getset, contract_getset},
    {0, nullptr},
};

PyType_Spec contract_spec = {"pyop._core.Contract", sizeof(Contract), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, contract_slots};

}  // namespace

int contract_init(PyObject* module) {
    contract_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &contract_spec, nullptr));
    return contract_type ? PyModule_AddType(module, contract_type) : -1;
}

}  // namespace pyop
