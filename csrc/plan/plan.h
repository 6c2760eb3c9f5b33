// plan/plan.h: define Plan, the Python object of a compiled graph. Callable; safe to call from many threads at once.
#pragma once

#include <memory>
#include <string>

#include "plan/result_tree.h"
#include "plan/write_back.h"

namespace pyop {

// How the fetches are handed back.
enum class FetchForm : int8_t { Single, Tuple, List, Tree };

struct PlanObject {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject* graph;
    Program* program;
    Request* request;              // what it was compiled for
    std::vector<int32_t>* leaves;  // one a fetch: index of the program's output, or -1 for None (a node)
    FetchForm form;
    PyObject* tree;                // TreeDef for FetchForm::Tree
    const ResultTree* plain_tree;  // the same, if it has plain containers only
    int threads;
    std::shared_ptr<const void>* entry;  // what C calls (entry/entry.h), if somebody has asked for it
    PyObject* dict;
    PyObject* weakrefs;
};

extern PyTypeObject* plan_type;

PyObject* plan_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames);

// "inputs x, y", for errors.
std::string feed_names(const Program& p);

// What became of each node, for Plan.explain() (node_facts.cpp).
PyObject* plan_facts(PyObject* self, PyObject*);

// Whose memory the results show, for Plan._owners() (node_facts.cpp).
PyObject* plan_owners(PyObject* self, PyObject*);

// Adds Plan and compile() to the module.
int plan_init(PyObject* module);

}  // namespace pyop
