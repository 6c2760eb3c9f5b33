// array/call/remedy.cpp: choose a remedy by the meaning of the dtypes, then by the library of the object.
#include "array/call/remedy.h"

#include "array/contract/describe.h"
#include "runtime/attribute.h"
#include "runtime/errors.h"
#include "runtime/ref.h"

namespace pyop {

namespace {

// "torch" of torch.Tensor.
std::string library_of(PyObject* o) {
    const Ref module = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__module__"));
    const std::string name = module && PyUnicode_Check(module.get()) ? printable(module.get()) : "";
    PyErr_Clear();
    return name.substr(0, name.find('.'));
}

// Text of dates as np.dtype() reads it; the names of numbers are attributes of np.
std::string dtype_as_written(PyArray_Descr* want) {
    const std::string name = dtype_text(want);
    return name.find('[') == name.npos ? name : "'" + name + "'";
}

}  // namespace

std::string cast_remedy(PyObject* given, PyArray_Descr* have, PyArray_Descr* want) {
    const SavedError keep;
    const bool number = PyTypeNum_ISNUMBER(want->type_num) || PyTypeNum_ISBOOL(want->type_num);
    if (number && have->type_num == NPY_DATETIME)
        return "a date is no number: pass the time since one, (x - x0) / np.timedelta64(1, 's')";
    if (number && have->type_num == NPY_TIMEDELTA)
        return "a duration is no number: pass it in a unit, x / np.timedelta64(1, 's')";
    const std::string dtype = dtype_as_written(want);
    if (!given || is_exact_array(given)) return "pass x.astype(" + dtype + ")";
    const std::string library = library_of(given);
    if (library == "torch") return "pass x.to(torch." + dtype + ")";
    if (library == "pyarrow") return "pass x.cast('" + dtype_text(want) + "')";
    if (has_attribute<"to_numpy">(given)) return "pass x.to_numpy(dtype=" + dtype + ")";
    // JAX casts to 32 bits where it is not told otherwise.
    if (library != "jax" && library != "jaxlib" && has_attribute<"astype">(given))
        return "pass x.astype(" + dtype + ")";
    return "pass np.asarray(x).astype(" + dtype + ")";
}

}  // namespace pyop
