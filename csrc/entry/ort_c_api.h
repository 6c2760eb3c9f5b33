// entry/ort_c_api.h: declare what pyop's operators need of ONNX Runtime's C API, from its version 17 on.
//
// The API is a table of functions whose places never change. Only the places that are used are named here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pyop::ort {

struct Status;
struct Options;
struct Domain;
struct Info;
struct Context;
struct Value;
struct Shape;

constexpr uint32_t kVersion = 17;
enum Code : int { kFail = 1, kInvalidArgument = 2 };

// Places in the table of functions.
enum Place {
    kCreateStatus = 0,
    kCreateCustomOpDomain = 26,
    kCustomOpDomainAdd = 27,
    kAddCustomOpDomain = 28,
    kGetTensorMutableData = 51,
    kGetTensorElementType = 60,
    kGetDimensionsCount = 61,
    kGetDimensions = 62,
    kGetTensorTypeAndShape = 65,
    kKernelContextGetInputCount = 88,
    kKernelContextGetInput = 90,
    kKernelContextGetOutput = 91,
    kReleaseTensorTypeAndShapeInfo = 99,
};

using Api = void* const*;

struct ApiBase {
    Api (*get_api)(uint32_t version);
    const char* (*get_version)();
};

template <typename... A>
Status* call(Api api, Place place, A... a) {
    return reinterpret_cast<Status* (*)(A...)>(api[place])(a...);
}

// An operator as ONNX Runtime asks about it: the first 24 callbacks of version 17.
struct CustomOp {
    uint32_t version;
    void* (*create_kernel)(const CustomOp*, Api, const Info*);
    const char* (*name)(const CustomOp*);
    const char* (*provider)(const CustomOp*);
    int (*input_type)(const CustomOp*, size_t);
    size_t (*input_count)(const CustomOp*);
    int (*output_type)(const CustomOp*, size_t);
    size_t (*output_count)(const CustomOp*);
    void (*compute)(void* kernel, Context*);
    void (*destroy)(void* kernel);
    int (*input_characteristic)(const CustomOp*, size_t);
    int (*output_characteristic)(const CustomOp*, size_t);
    int (*input_memory)(const CustomOp*, size_t);
    int (*variadic_input_min)(const CustomOp*);
    int (*variadic_input_same)(const CustomOp*);
    int (*variadic_output_min)(const CustomOp*);
    int (*variadic_output_same)(const CustomOp*);
    Status* (*create_kernel_v2)(const CustomOp*, Api, const Info*, void** kernel);
    Status* (*compute_v2)(void* kernel, Context*);
    Status* (*infer_shapes)(const CustomOp*, void*);
    int (*start_version)(const CustomOp*);
    int (*end_version)(const CustomOp*);
};

}  // namespace pyop::ort
