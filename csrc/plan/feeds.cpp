// plan/feeds.cpp: check the arguments of a plan on their way in.
#include <memory>

#include "array/call/arguments.h"
#include "array/call/remedy.h"
#include "array/call/text.h"
#include "array/contract/describe.h"
#include "plan/execute.h"
#include "runtime/errors.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

class FeedCaller final : public Caller {
  public:
    FeedCaller(const Program& p, size_t k) : p_(p), k_(k) {}
    std::string name() const override { return printable(p_.feeds[k_].name.get()); }
    std::string description() const override { return "input '" + name() + "'"; }

  private:
    const Program& p_;
    size_t k_;
};

std::string dim_text(const Program& p, npy_intp dim) {
    if (dim >= 0) return std::to_string(dim);
    if (dim == -1) return "_";
    Ref text = Ref::steal(PyObject_Str(p.feed_symbols[static_cast<size_t>(-2 - dim)].get()));
    const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (!utf8) PyErr_Clear();
    return utf8 ? utf8 : "?";
}

std::string feed_text(const Program& p, const Feed& feed) {
    std::string text = feed.dtype ? dtype_text(feed.dtype) : feed.text == 'U' ? "str" : feed.text ? "bytes" : "_";
    if (feed.ndim < 0) return text;
    text += "[";
    for (size_t d = 0; d < feed.dims.size(); ++d) text += (d ? "," : "") + dim_text(p, feed.dims[d]);
    return text + "]";
}

// What the symbolic sizes are bound to in one call, by number; -1 is unbound.
using Sizes = StackArray<npy_intp, 16>;

std::string sizes_text(const Program& p, const Sizes& sizes) {
    std::string text;
    for (size_t i = 0; i < sizes.size(); ++i)
        if (sizes[i] >= 0)
            text += (text.empty() ? " (" : ", ") + dim_text(p, -2 - static_cast<npy_intp>(i)) + " = " +
                    std::to_string(sizes[i]);
    return text.empty() ? text : text + ")";
}

// Text of any length, of its own kind only, as ops have it.
bool holds_text(char kind, PyArrayObject* a) { return PyArray_TYPE(a) == (kind == 'U' ? NPY_UNICODE : NPY_STRING); }

PYOP_COLD int wrong_feed(const Program& p, size_t k, PyObject* array, PyObject* given, const Sizes& sizes) {
    const Feed& feed = p.feeds[k];
    std::string message = "input '" + FeedCaller(p, k).name() + "' of the graph is " + array_text(array) +
                          ", but expects " + feed_text(p, feed) + sizes_text(p, sizes);
    if (feed.dtype && !PyArray_EquivTypes(feed.dtype, PyArray_DESCR(as_array(array))))
        message += "\n  nothing is cast silently: " + cast_remedy(given, PyArray_DESCR(as_array(array)), feed.dtype);
    if (feed.text && !holds_text(feed.text, as_array(array)))
        message +=
            std::string("\n  nothing is cast silently: pass x.astype(") + (feed.text == 'U' ? "str" : "bytes") + ")";
    PyErr_SetString(errors.input, message.c_str());
    return -1;
}

bool fits(const Feed& feed, PyArrayObject* a, Sizes& sizes) {
    if (PYOP_UNLIKELY(feed.text) && !holds_text(feed.text, a)) return false;
    if (feed.dtype && PyArray_DESCR(a) != feed.dtype && !PyArray_EquivTypes(PyArray_DESCR(a), feed.dtype)) return false;
    if (feed.ndim < 0) return true;
    if (PyArray_NDIM(a) != feed.ndim) return false;
    for (int d = 0; d < feed.ndim; ++d) {
        const npy_intp want = feed.dims[static_cast<size_t>(d)], have = PyArray_DIM(a, d);
        if (want >= 0 && want != have) return false;
        if (want > -2) continue;
        npy_intp& bound = sizes[static_cast<size_t>(-2 - want)];
        if (bound >= 0 && bound != have) return false;
        bound = have;
    }
    return true;
}

// Sizes like n+1: evaluated in Python, with the sizes that plain names were bound to.
int check_exprs(const Program& p, PyObject* const* arrays, const Sizes& sizes) {
    Ref env = Ref::steal(PyDict_New());
    for (size_t i = 0; env && i < sizes.size(); ++i) {
        if (sizes[i] < 0) continue;
        Ref name = Ref::steal(PyObject_Str(p.feed_symbols[i].get())), size = Ref::steal(PyLong_FromSsize_t(sizes[i]));
        if (!name || !size || PyDict_SetItem(env.get(), name.get(), size.get()) < 0) return -1;
    }
    for (const FeedExpr& e : p.feed_exprs) {
        Ref want = env ? Ref::steal(survive([&] {
            return PyObject_CallMethodOneArg(e.expr.get(), up_attributes.evaluate, env.get());
        }))
                       : Ref();
        if (!want) return -1;
        if (!PyLong_Check(want.get())) continue;  // a name in it is bound by no input
        if (PyArray_NDIM(as_array(arrays[e.feed])) <= e.dim) continue;  // changed by another thread
        const npy_intp have = PyArray_DIM(as_array(arrays[e.feed]), e.dim);
        if (PyLong_AsSsize_t(want.get()) == have) continue;
        PyErr_Format(errors.input, "dimension %d of input '%s' is %zd, but expects %S = %S%s", e.dim,
                     FeedCaller(p, e.feed).name().c_str(), have, e.expr.get(), want.get(),
                     sizes_text(p, sizes).c_str());
        return -1;
    }
    return 0;
}

PyObject* convert_new(const Program& p, size_t k, PyObject* value) {
    if (PYOP_LIKELY(is_exact_array(value) && PyArray_ISNOTSWAPPED(as_array(value)))) return Py_NewRef(value);
    PyObject* array = convert_argument_new(value, p.feeds[k].dtype, false);
    // A graph that declares text as objects (py_func's way) takes str and bytes.
    const bool wants_objects = p.feeds[k].dtype && p.feeds[k].dtype->type_num == NPY_OBJECT;
    if (array && wants_objects && PyArray_ISSTRING(as_array(array)))
        Py_SETREF(array, convert_argument_new(value, nullptr, true));
    if (!p.feeds[k].dtype) array = keep_nuls_steal(array, value);
    if (array || !PyErr_ExceptionMatches(PyExc_Exception)) return array;
    Ref why = pending_text();
    Ref message =
        Ref::steal(PyUnicode_FromFormat("input '%s' of the graph, a %s, cannot become an array: %U",
                                        FeedCaller(p, k).name().c_str(), type_name(value).c_str(), why.get()));
    raise_from_pending(errors.input, message.get());
    return nullptr;
}

}  // namespace

bool feeds_fit(const Program& p, PyObject* const* values) {
    Sizes sizes(p.feed_symbols.size(), -1);
    for (size_t k = 0; k < p.feeds.size(); ++k)
        if (!is_exact_array(values[k]) || !PyArray_ISNOTSWAPPED(as_array(values[k])) ||
            !fits(p.feeds[k], as_array(values[k]), sizes))
            return false;
    return true;
}

int check_feeds(const Program& p, PyObject* const* values, PyObject** arrays) {
    Sizes sizes(p.feed_symbols.size(), -1);
    size_t done = 0;
    int status = 0;
    // All are converted before the first is looked at: a conversion may run anything, and change the others.
    for (; done < p.feeds.size(); ++done) {
        arrays[done] = convert_new(p, done, values[done]);
        if (!arrays[done]) break;
    }
    if (done < p.feeds.size()) status = -1;
    for (size_t k = 0; k < done && status == 0; ++k)
        if (!fits(p.feeds[k], as_array(arrays[k]), sizes)) status = wrong_feed(p, k, arrays[k], values[k], sizes);
    if (status == 0 && !p.feed_exprs.empty()) status = check_exprs(p, arrays, sizes);
    if (status == 0) return 0;
    for (size_t k = 0; k < done; ++k) Py_CLEAR(arrays[k]);
    return -1;
}

}  // namespace pyop
