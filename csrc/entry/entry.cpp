// entry/entry.cpp: make entries: find what the arrays are, and whether the plan needs Python.
#include "entry/entry.h"

#include <algorithm>
#include <mutex>

#include "array/contract/describe.h"
#include "entry/blas_calls.h"
#include "graph/value_spec.h"
#include "runtime/attach.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

// All entries; when Python has begun to shut down their plans live for ever.
std::mutex entries_mutex;
std::vector<Entry*> entries;
bool shutting_down = false;

PyObject* keep_plans_at_exit(PyObject*, PyObject*) {
    {
        const std::lock_guard lock(entries_mutex);
        if (!shutting_down)
            for (const Entry* entry : entries) Py_INCREF(entry->plan);
        shutting_down = true;
    }
    {
        const DetachScope detached;
        end_blas_calls();
    }
    Py_RETURN_NONE;
}

int register_at_exit() {
    static bool done = false;
    static PyMethodDef method = {"keep_plans_at_exit", keep_plans_at_exit, METH_NOARGS, nullptr};
    if (done) return 0;
    Ref function = Ref::steal(PyCFunction_New(&method, nullptr));
    Ref module = function ? Ref::steal(PyImport_ImportModule("atexit")) : Ref();
    Ref registered = module ? Ref::steal(PyObject_CallMethod(module.get(), "register", "O", function.get())) : Ref();
    if (!registered) return -1;
    done = true;
    return 0;
}

bool holds_numbers(PyArray_Descr* d) {
    return (PyTypeNum_ISNUMBER(d->type_num) || PyTypeNum_ISBOOL(d->type_num)) && PyArray_ISNBO(d->byteorder);
}

constexpr char kRemedy[] =
    "\n  C hands over addresses, which tell neither: declare dtypes and sizes as numbers, such as 'float64[3]' or, of "
    "a "
    "single number, 'float64[]'";

// 0, or -1 with the error set.
int describe(const ValueSpec& spec, const std::string& what, const std::string& name, std::deque<EntryArray>& arrays) {
    const bool sized =
        spec.ndim >= 0 && std::all_of(spec.dims.begin(), spec.dims.end(), [](int64_t d) { return d >= 0; });
    if (!spec.descr() || !holds_numbers(spec.descr()) || !sized) {
        Ref object = Ref::steal(spec_new(spec)), text = object ? Ref::steal(PyObject_Str(object.get())) : Ref();
        if (!text) return -1;
        const bool numbers = !spec.descr() || holds_numbers(spec.descr());
        PyErr_Format(
            PyExc_TypeError, "the plan cannot be called from C: %s is %s%s", what.c_str(),
            printable(text.get()).c_str(),
            numbers ? kRemedy : "\n  C takes booleans, integers, floats and complex numbers of native byte order");
        return -1;
    }
    EntryArray& a = arrays.emplace_back();
    a.name = name;
    a.dtype = spec.descr();
    a.dtype_text = dtype_text(a.dtype);
    a.shape.assign(spec.dims.begin(), spec.dims.end());
    a.dims.assign(spec.dims.begin(), spec.dims.end());
    a.told = {a.name.c_str(), a.dtype_text.c_str(), static_cast<size_t>(PyDataType_ELSIZE(a.dtype)),
              spec.ndim,      a.shape.data(),       0};
    a.told.bytes = a.told.itemsize;
    for (const int64_t d : a.shape) a.told.bytes *= static_cast<size_t>(d);
    return 0;
}

int describe_all(const PlanObject& plan, Entry& entry) {
    const Program& p = *plan.program;
    const Graph& g = graph_of(plan.graph);
    if (!p.writes.empty()) {
        PyErr_Format(
            PyExc_TypeError,
            "the plan cannot be called from C: it writes into its input '%s'\n  what C hands over is read only: "
            "return what the array holds in the end instead",
            printable(p.feeds[p.writes[0].feed].name.get()).c_str());
        return -1;
    }
    for (size_t k = 0; k < p.feeds.size(); ++k) {
        const std::string name = printable(p.feeds[k].name.get());
        if (describe(g.spec(plan.request->feeds[k]), "input '" + name + "'", name, entry.inputs) < 0) return -1;
    }
    for (size_t k = 0; k < p.n_results(); ++k)
        if (describe(g.spec(plan.request->fetches[k]), "result " + std::to_string(k), "", entry.outputs) < 0) return -1;
    return 0;
}

NativeCall::Array array_of(const EntryArray& a) { return {a.dtype, a.told.ndim, a.dims.data()}; }

}  // namespace

Entry::Entry(PyObject* of) : head{&entry_table}, plan(of) {
    const std::lock_guard lock(entries_mutex);
    entries.push_back(this);
    if (shutting_down) Py_INCREF(of);
}

Entry::~Entry() {
    const std::lock_guard lock(entries_mutex);
    std::erase(entries, this);
}

const Entry* entry_of(PyObject* object) {
    PlanObject& plan = *reinterpret_cast<PlanObject*>(object);
    if (plan.entry) return static_cast<const Entry*>(plan.entry->get());
    if (graph_of(plan.graph).check_usable() < 0 || register_at_exit() < 0 || hold_blas_calls_at_fork() < 0)
        return nullptr;
    auto made = std::make_shared<Entry>(object);
    if (describe_all(plan, *made) < 0) return nullptr;
    const auto pack = [](const std::deque<EntryArray>& arrays, std::vector<size_t>& begins) {
        size_t at = 0;
        for (const EntryArray& a : arrays) {
            begins.push_back(at);
            at += a.told.bytes;
        }
        return at;
    };
    made->packed_bytes = pack(made->inputs, made->packed_inputs);
    pack(made->outputs, made->packed_outputs);
    std::vector<NativeCall::Array> inputs, outputs;
    for (const EntryArray& a : made->inputs) inputs.push_back(array_of(a));
    for (const EntryArray& a : made->outputs) outputs.push_back(array_of(a));
    made->native = made->tape.record(*plan.program, inputs, outputs);
    if (!plan.entry) plan.entry = new std::shared_ptr<const void>(std::move(made));
    return static_cast<const Entry*>(plan.entry->get());
}

}  // namespace pyop
