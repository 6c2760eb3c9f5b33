// graph/graph.cpp: add nodes under unique names, intern the lines that made them, and end a graph.
#include "graph/graph.h"

#include "runtime/errors.h"
#include "runtime/up_calls.h"

namespace pyop {

Graph::~Graph() {
    for (const Origin& site : sites_) {
        Py_XDECREF(site.code);
        Py_XDECREF(site.text);
    }
}

void Graph::drop() {
    dropped_ = true;
    for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i]->drop();
    std::unordered_map<uint32_t, Ref> folded;
    const BriefLock lock(mutex_);
    std::swap(folded_, folded);
}

int Graph::not_usable() {
    PyErr_SetString(errors.graph, "the graph is being destroyed by the garbage collector; it can no longer run");
    return -1;
}

int Graph::traverse(visitproc visit, void* arg) const {
    for (size_t i = 0; i < nodes_.size(); ++i)
        if (const int r = nodes_[i]->visit(visit, arg)) return r;
    for (const auto& [index, results] : folded_) Py_VISIT(results.get());
    return 0;
}

int Graph::watch(PyObject* variable) {
    PyObject* value = nullptr;
    if (PyContextVar_Get(variable, nullptr, &value) < 0) return -1;
    watched_value_ = SharedRef::steal(value ? value : Py_NewRef(Py_None));
    watched_ = SharedRef::borrow(variable);
    return watched_ && watched_value_ ? 0 : -1;
}

int Graph::look() {
    PyObject* now = nullptr;
    if (PyContextVar_Get(watched_.get(), nullptr, &now) < 0) return -1;
    const Ref value = Ref::steal(now ? now : Py_NewRef(Py_None));
    crossed_ |= value.get() != watched_value_.get();
    return 0;
}

int64_t Graph::add(std::unique_ptr<Node> node, PyObject* base) {
    if (PYOP_UNLIKELY(nodes_.size() >= most_)) return too_many();
    if (PYOP_UNLIKELY(finished_)) return no_more(*node);
    const Origin origin = current_origin();
    if (!PyUnicode_AsUTF8(base)) return -1;  // and keeps it
    const BriefLock lock(mutex_);
    if (name_node(*node, base) < 0) return -1;
    node->site = intern_site(origin);
    const auto index = static_cast<uint32_t>(nodes_.size());
    if (node->kind() == NodeKind::Input) inputs_.push_back(index);
    nodes_.push_back(std::move(node));
    return index;
}

int64_t Graph::too_many() const {
    if (most_ == UINT32_MAX)
        PyErr_SetString(errors.graph, "a graph holds at most 2**32 - 1 nodes");
    else
        PyErr_Format(up_calls.run_itself, "does more than %zu things in one call, which is more than a plan is made of",
                     most_);
    return -1;
}

int64_t Graph::no_more(const Node& node) const {
    if (node.inputs().empty()) {
        PyErr_Format(errors.graph, "no node can be added to this graph: %U, and it is finished", finished_.get());
        return -1;
    }
    Ref text = kept_value_text(node.inputs()[0].node);
    if (text) PyErr_SetObject(errors.graph, text.get());
    return -1;
}

Ref Graph::kept_value_text(uint32_t i) const {
    Ref name = node_name(i), line = origin_text(node_origin(i));
    if (!name || !line) return {};
    return Ref::steal(PyUnicode_FromFormat(
        "Value '%U' was made at %U while %U, and kept: it means nothing outside of that call, which has ended. Instead "
        "of keeping it return it from the function, and keep what the call gives",
        name.get(), line.get(), finished_.get()));
}

// Sites repeat: a loop creates all its nodes on one line.
uint32_t Graph::intern_site(const Origin& origin) {
    if (!sites_.empty() && sites_.back() == origin) return static_cast<uint32_t>(sites_.size() - 1);
    const size_t hash = (reinterpret_cast<size_t>(origin.code) ^ reinterpret_cast<size_t>(origin.text)) * 31 +
                        static_cast<size_t>(origin.instruction);
    if (const auto it = site_ids_.find(hash); it != site_ids_.end() && sites_[it->second] == origin) return it->second;
    const auto id = static_cast<uint32_t>(sites_.size());
    Py_XINCREF(origin.code);
    Py_XINCREF(origin.text);
    sites_.push_back(origin);
    site_ids_[hash] = id;
    return id;
}

namespace {

// The length of "name" in "name_12", or npos.
size_t before_ordinal(const std::string& text) {
    const size_t at = text.find_last_not_of("0123456789");
    return at != std::string::npos && at + 1 < text.size() && at > 0 && text[at] == '_' ? at : std::string::npos;
}

}  // namespace

bool Graph::taken(const std::string& text) const {
    if (name_ids_.count(text)) return true;
    const size_t at = before_ordinal(text);
    if (at == std::string::npos || text.size() - at > 10 || text[at + 1] == '0') return false;
    const auto it = name_ids_.find(text.substr(0, at));
    return it != name_ids_.end() && std::stoull(text.substr(at + 1)) < names_[it->second].next_ordinal;
}

// A name is a text and an ordinal: "f", "f_1", "f_2". The texts are shared, the ordinals count.
int Graph::name_node(Node& node, PyObject* base) {
    Py_ssize_t size;
    const char* utf8 = PyUnicode_AsUTF8AndSize(base, &size);
    if (!utf8) return -1;
    std::string text(utf8, static_cast<size_t>(size));
    auto it = name_ids_.find(text);
    if (it == name_ids_.end()) {
        const uint32_t first = taken(text) ? 1 : 0;
        it = name_ids_.emplace(text, static_cast<uint32_t>(names_.size())).first;
        names_.push_back({Ref::borrow(base), first});
        has_numbered_names_ |= before_ordinal(text) != std::string::npos;
    }
    Name& name = names_[it->second];
    if (has_numbered_names_)
        while (name.next_ordinal > 0 && name_ids_.count(text + "_" + std::to_string(name.next_ordinal)))
            ++name.next_ordinal;
    node.name = it->second;
    node.ordinal = name.next_ordinal++;
    return 0;
}

Ref Graph::node_name(uint32_t i) const {
    const Node& node = *nodes_[i];
    Ref base;
    {
        const BriefLock lock(mutex_);
        base = names_[node.name].text;
    }
    return node.ordinal == 0 ? base : Ref::steal(PyUnicode_FromFormat("%U_%u", base.get(), node.ordinal));
}

PyObject* Graph::folded(uint32_t i) const {
    const BriefLock lock(mutex_);
    const auto it = folded_.find(i);
    return it == folded_.end() ? nullptr : it->second.get();
}

void Graph::keep_folded(uint32_t i, PyObject* results) {
    const BriefLock lock(mutex_);
    // Never replaced: arrays of the tuple are in use by reference while user functions run.
    if (!folded_.count(i)) folded_.emplace(i, Ref::borrow(results));
}

std::string NodeCaller::name() const {
    Ref name = graph_.node_name(node_);
    return name ? printable(name.get()) : "?";
}

const Contract* NodeCaller::declared() const {
    const bool calls = graph_.node(node_).kind() == NodeKind::Py;
    return calls ? graph_.node_as<PyNode>(node_).contract() : nullptr;
}

std::string NodeCaller::description() const {
    SavedError keep;
    Ref place = origin_text(graph_.node_origin(node_));
    const char* text = place ? PyUnicode_AsUTF8(place.get()) : nullptr;
    if (!text) PyErr_Clear();
    return "node '" + name() + "' (created at " + (text ? text : "an unknown place") + ")";
}

}  // namespace pyop
