// graph/infer.cpp: infer what a contract promises of its outputs, given what is known of the inputs.
//
// Plain contracts are worked out here; the rest (expressions, variadics, type variables, gufuncs, abstract
// functions) is asked of Signature.infer in Python, once per node.
#include <algorithm>
#include <array>

#include "array/call/checked_call.h"
#include "array/contract/describe.h"
#include "graph/build.h"
#include "runtime/errors.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// A symbolic size may turn out to be anything: only two known sizes can contradict each other.
bool contradict(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

std::string value_spec_text(const ValueSpec& spec) {
    SavedError keep;
    Ref python = Ref::steal(spec_new(spec));
    Ref text = python ? Ref::steal(PyObject_Str(python.get())) : Ref();
    const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (!utf8) PyErr_Clear();
    return utf8 ? utf8 : "?";
}

PYOP_COLD int provable_mismatch(const Contract& c, size_t k, const ValueSpec& got, const Caller& caller) {
    const std::string name = caller.argument_name(static_cast<int64_t>(k));
    PyErr_Format(errors.input, "argument %zu%s of %s is %s, but expects %s\n  in %s", k,
                 name.empty() ? "" : (" ('" + name + "')").c_str(), caller.name().c_str(), value_spec_text(got).c_str(),
                 spec_text(c, (*c.inputs)[k]).c_str(), caller.description().c_str());
    return -1;
}

using NamedSizes = std::array<int64_t, Contract::kMaxNames>;
constexpr int64_t kNotSeen = INT64_MIN;

bool bind(const ArraySpec& spec, const ValueSpec& value, NamedSizes& sizes) {
    if (spec.dtype && value.dtype && spec.dtype.get() != value.dtype.get() && !dtype_fits(spec, value.descr()))
        return false;
    if (value.ndim < 0 || spec.plain_ndim < 0) return true;
    if (value.ndim != spec.plain_ndim) return false;
    for (size_t d = 0; d < spec.plain_dims.size(); ++d) {
        const npy_intp want = spec.plain_dims[d];
        const int64_t have = value.dims[d];
        if (want >= 0) {
            if (contradict(want, have)) return false;
        } else if (want <= -2) {
            int64_t& bound = sizes[static_cast<size_t>(-2 - want)];
            if (bound != kNotSeen && contradict(bound, have)) return false;
            if (bound == kNotSeen || bound == kUnknownSize || have >= 0) bound = have;
        }
    }
    return true;
}

ValueSpec promise(const ArraySpec& spec, const NamedSizes& sizes) {
    ValueSpec out;
    out.dtype = spec.dtype;
    out.ndim = spec.plain_ndim;
    out.form = Form::Array;
    for (const npy_intp want : spec.plain_dims) {
        const int64_t bound = want <= -2 ? sizes[static_cast<size_t>(-2 - want)] : want;
        out.dims.push_back(want == -1 || bound == kNotSeen ? kUnknownSize : bound);
    }
    return out;
}

// An abstract rule answers with the specs and the contract they make; a Signature with the specs.
Ref ask(const Contract& c, PyObject* inputs, const CallForm* form, Ref* promised) {
    if (!c.abstract)
        return Ref::steal(survive([&] { return PyObject_CallMethodOneArg(c.signature, up_attributes.infer, inputs); }));
    Ref statics = static_dict_new(form);
    Ref both = statics ? Ref::steal(survive([&] {
        return PyObject_CallMethodObjArgs(c.abstract, up_attributes.infer, inputs, statics.get(), nullptr);
    }))
                       : Ref();
    PyObject *specs, *contract;
    if (!both || !PyArg_ParseTuple(both.get(), "OO!", &specs, contract_type, &contract)) return {};
    if (promised) *promised = Ref::borrow(contract);
    return Ref::borrow(specs);
}

int infer_in_python(Graph& g, const Contract& c, std::span<const Edge> edges, const CallForm* form,
                    std::vector<uint32_t>& specs, Ref* promised, const Caller& caller) {
    Ref inputs = Ref::steal(PyList_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t k = 0; inputs && k < edges.size(); ++k) {
        PyObject* spec = spec_new(g.spec(edges[k]));
        if (!spec) return -1;
        PyList_SET_ITEM(inputs.get(), static_cast<Py_ssize_t>(k), spec);
    }
    if (!inputs) return -1;
    Ref outputs = ask(c, inputs.get(), form, promised);
    if (!outputs) {
        if (c.abstract || !PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
        Ref why = pending_text();
        Ref message = Ref::steal(PyUnicode_FromFormat("%U\n  in %s", why.get(), caller.description().c_str()));
        raise_from_pending(errors.input, message.get());
        return -1;
    }
    Ref list = Ref::steal(PySequence_Tuple(outputs.get()));
    if (!list) return -1;
    if (!c.abstract && PyTuple_GET_SIZE(list.get()) != c.n_out()) {
        PyErr_Format(errors.output, "%s declares %zd outputs, but its output specs are %zd\n  in %s",
                     caller.name().c_str(), c.n_out(), PyTuple_GET_SIZE(list.get()), caller.description().c_str());
        return -1;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(list.get()); ++k) {
        ValueSpec spec;
        if (spec_from_python(PyTuple_GET_ITEM(list.get(), k), spec) < 0) return -1;
        spec.form = Form::Array;
        specs.push_back(g.specs().intern(std::move(spec)));
    }
    return 0;
}

// Whether the outputs are those of the last call, which are added to `specs` then.
bool is_last(const Graph& g, const LastInferred& last, std::span<const Edge> edges, std::vector<uint32_t>& specs) {
    if (last.graph != g.serial() || last.n_in != edges.size()) return false;
    for (size_t k = 0; k < edges.size(); ++k)
        if (last.inputs[k] != g.spec_number(edges[k])) return false;
    specs.insert(specs.end(), last.outputs.begin(), last.outputs.begin() + last.n_out);
    return true;
}

void keep_last(const Graph& g, LastInferred& last, std::span<const Edge> edges, std::span<const uint32_t> specs) {
    if (edges.size() > LastInferred::kMost || specs.size() > LastInferred::kMost) return;
    last.graph = g.serial();
    last.n_in = static_cast<uint32_t>(edges.size());
    last.n_out = static_cast<uint32_t>(specs.size());
    for (size_t k = 0; k < edges.size(); ++k) last.inputs[k] = g.spec_number(edges[k]);
    std::copy(specs.begin(), specs.end(), last.outputs.begin());
}

}  // namespace

int infer_outputs(PyObject* graph, const Contract& c, std::span<const Edge> edges, const CallForm* form,
                  std::vector<uint32_t>& specs, Ref* promised, const Caller& caller) {
    Graph& g = graph_of(graph);
    if (promised) *promised = Ref::borrow(reinterpret_cast<PyObject*>(const_cast<Contract*>(&c)));
    LastInferred& last = const_cast<Contract&>(c).last_inferred;
    if (is_last(g, last, edges, specs)) return 0;
    bool plain = !c.gufunc && !c.abstract;
    for (const ArraySpec& spec : *c.inputs) plain = plain && spec.plain;
    for (const ArraySpec& spec : *c.outputs) plain = plain && spec.plain;
    if (!plain) return infer_in_python(g, c, edges, form, specs, promised, caller);
    NamedSizes sizes;
    std::fill_n(sizes.begin(), c.n_names, kNotSeen);
    for (size_t k = 0; c.inputs_declared && k < edges.size(); ++k)
        if (!bind((*c.inputs)[k], g.spec(edges[k]), sizes)) return provable_mismatch(c, k, g.spec(edges[k]), caller);
    for (const ArraySpec& spec : *c.outputs) specs.push_back(g.specs().intern(promise(spec, sizes)));
    keep_last(g, last, edges, specs);
    return 0;
}

}  // namespace pyop
