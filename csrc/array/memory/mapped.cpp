// array/memory/mapped.cpp: map a file, and unmap it when the last array that shows it dies.
#include "array/memory/mapped.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <memory>

#include "runtime/ref.h"

namespace pyop {

namespace {

constexpr char kName[] = "pyop.mapping";
#ifdef MAP_POPULATE
constexpr int kFlags = MAP_SHARED | MAP_POPULATE;  // all pages are there already: one call instead of a fault for each
#else
constexpr int kFlags = MAP_SHARED;
#endif

struct Mapping {
    void* start;
    size_t size;
    ~Mapping() { munmap(start, size); }
};

void forget(PyObject* capsule) { delete static_cast<Mapping*>(PyCapsule_GetPointer(capsule, kName)); }

}  // namespace

PyObject* mapped_file_new(int fd, bool writable, bool own) {
    struct stat about;
    if (fstat(fd, &about) < 0) return PyErr_SetFromErrno(PyExc_OSError);
    const auto size = static_cast<size_t>(about.st_size);
    void* start;
    Py_BEGIN_ALLOW_THREADS;
    start = mmap(nullptr, size, PROT_READ | (writable ? PROT_WRITE : 0), own ? MAP_PRIVATE : kFlags, fd, 0);
    Py_END_ALLOW_THREADS;
    if (start == MAP_FAILED) return PyErr_SetFromErrno(PyExc_OSError);
    std::unique_ptr<Mapping> mapping(new Mapping{start, size});
    const Ref capsule = Ref::steal(PyCapsule_New(mapping.get(), kName, forget));
    if (!capsule) return nullptr;
    mapping.release();
    npy_intp n = static_cast<npy_intp>(size);
    Ref array = Ref::steal(PyArray_SimpleNewFromData(1, &n, NPY_UINT8, start));
    if (!array) return nullptr;
    if (PyArray_SetBaseObject(as_array(array.get()), Py_NewRef(capsule.get())) < 0) return nullptr;
    if (!writable) PyArray_CLEARFLAGS(as_array(array.get()), NPY_ARRAY_WRITEABLE);
    return array.release();
}

}  // namespace pyop
