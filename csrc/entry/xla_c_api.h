// entry/xla_c_api.h: declare the part of XLA's C API for typed handlers (0.3) that calls on the CPU need. From XLA,
// without its comments and what is not needed; see LICENSES/Apache-2.0.txt.
/* Copyright 2023 The OpenXLA Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#ifndef PYOP_ENTRY_XLA_C_API_H
#define PYOP_ENTRY_XLA_C_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XLA_FFI_API_MAJOR 0
#define XLA_FFI_API_MINOR 3

typedef struct XLA_FFI_Api XLA_FFI_Api;
typedef struct XLA_FFI_InternalApi XLA_FFI_InternalApi;
typedef struct XLA_FFI_Error XLA_FFI_Error;
typedef struct XLA_FFI_ExecutionContext XLA_FFI_ExecutionContext;
typedef struct XLA_FFI_Future XLA_FFI_Future;

typedef enum {
    XLA_FFI_Extension_Metadata = 1,
} XLA_FFI_Extension_Type;

typedef struct XLA_FFI_Extension_Base {
    size_t struct_size;
    XLA_FFI_Extension_Type type;
    struct XLA_FFI_Extension_Base* next;
} XLA_FFI_Extension_Base;

typedef struct XLA_FFI_Api_Version {
    size_t struct_size;
    XLA_FFI_Extension_Base* extension_start;
    int major_version;
    int minor_version;
} XLA_FFI_Api_Version;

typedef enum {
    XLA_FFI_Error_Code_OK = 0,
    XLA_FFI_Error_Code_CANCELLED = 1,
    XLA_FFI_Error_Code_UNKNOWN = 2,
    XLA_FFI_Error_Code_INVALID_ARGUMENT = 3,
    XLA_FFI_Error_Code_DEADLINE_EXCEEDED = 4,
    XLA_FFI_Error_Code_NOT_FOUND = 5,
    XLA_FFI_Error_Code_ALREADY_EXISTS = 6,
    XLA_FFI_Error_Code_PERMISSION_DENIED = 7,
    XLA_FFI_Error_Code_RESOURCE_EXHAUSTED = 8,
    XLA_FFI_Error_Code_FAILED_PRECONDITION = 9,
    XLA_FFI_Error_Code_ABORTED = 10,
    XLA_FFI_Error_Code_OUT_OF_RANGE = 11,
    XLA_FFI_Error_Code_UNIMPLEMENTED = 12,
    XLA_FFI_Error_Code_INTERNAL = 13,
    XLA_FFI_Error_Code_UNAVAILABLE = 14,
    XLA_FFI_Error_Code_DATA_LOSS = 15,
    XLA_FFI_Error_Code_UNAUTHENTICATED = 16
} XLA_FFI_Error_Code;

typedef struct XLA_FFI_Error_Create_Args {
    size_t struct_size;
    XLA_FFI_Extension_Base* extension_start;
    const char* message;
    XLA_FFI_Error_Code errc;
} XLA_FFI_Error_Create_Args;

typedef XLA_FFI_Error* XLA_FFI_Error_Create(XLA_FFI_Error_Create_Args* args);

typedef enum {
    XLA_FFI_DataType_INVALID = 0,
    XLA_FFI_DataType_PRED = 1,
    XLA_FFI_DataType_S1 = 30,
    XLA_FFI_DataType_S2 = 26,
    XLA_FFI_DataType_S4 = 21,
    XLA_FFI_DataType_S8 = 2,
    XLA_FFI_DataType_S16 = 3,
    XLA_FFI_DataType_S32 = 4,
    XLA_FFI_DataType_S64 = 5,
    XLA_FFI_DataType_U1 = 31,
    XLA_FFI_DataType_U2 = 27,
    XLA_FFI_DataType_U4 = 22,
    XLA_FFI_DataType_U8 = 6,
    XLA_FFI_DataType_U16 = 7,
    XLA_FFI_DataType_U32 = 8,
    XLA_FFI_DataType_U64 = 9,
    XLA_FFI_DataType_F16 = 10,
    XLA_FFI_DataType_F32 = 11,
    XLA_FFI_DataType_F64 = 12,
    XLA_FFI_DataType_BF16 = 16,
    XLA_FFI_DataType_C64 = 15,
    XLA_FFI_DataType_C128 = 18,
    XLA_FFI_DataType_TOKEN = 17,
    XLA_FFI_DataType_F8E5M2 = 19,
    XLA_FFI_DataType_F8E3M4 = 29,
    XLA_FFI_DataType_F8E4M3 = 28,
    XLA_FFI_DataType_F8E4M3FN = 20,
    XLA_FFI_DataType_F8E4M3B11FNUZ = 23,
    XLA_FFI_DataType_F8E5M2FNUZ = 24,
    XLA_FFI_DataType_F8E4M3FNUZ = 25,
    XLA_FFI_DataType_F4E2M1FN = 32,
    XLA_FFI_DataType_F8E8M0FNU = 33,
} XLA_FFI_DataType;

typedef struct XLA_FFI_Buffer {
    size_t struct_size;
    XLA_FFI_Extension_Base* extension_start;
    XLA_FFI_DataType dtype;
    void* data;
    int64_t rank;
    int64_t* dims;
} XLA_FFI_Buffer;

typedef enum {
    XLA_FFI_ArgType_BUFFER = 1,
} XLA_FFI_ArgType;

typedef enum {
    XLA_FFI_RetType_BUFFER = 1,
} XLA_FFI_RetType;

typedef enum {
    XLA_FFI_AttrType_ARRAY = 1,
    XLA_FFI_AttrType_DICTIONARY = 2,
    XLA_FFI_AttrType_SCALAR = 3,
    XLA_FFI_AttrType_STRING = 4,
} XLA_FFI_AttrType;

typedef struct XLA_FFI_ByteSpan {
    const char* ptr;
    size_t len;
} XLA_FFI_ByteSpan;

typedef struct XLA_FFI_Scalar {
    XLA_FFI_DataType dtype;
    void* value;
} XLA_FFI_Scalar;

typedef struct XLA_FFI_TypeId {
    int64_t type_id;
} XLA_FFI_TypeId;

typedef enum {
    XLA_FFI_ExecutionStage_INSTANTIATE = 0,
    XLA_FFI_ExecutionStage_PREPARE = 1,
    XLA_FFI_ExecutionStage_INITIALIZE = 2,
    XLA_FFI_ExecutionStage_EXECUTE = 3,
} XLA_FFI_ExecutionStage;

typedef struct XLA_FFI_Args {
    size_t struct_size;
    XLA_FFI_Extension_Base* extension_start;
    int64_t size;
    XLA_FFI_ArgType* types;
    void** args;
} XLA_FFI_Args;

typedef struct XLA_FFI_Rets {
    size_t struct_size;
    XLA_FFI_Extension_Base* extension_start;
    int64_t size;
    XLA_FFI_RetType* types;
    void** rets;
} XLA_FFI_Rets;

typedef struct XLA_FFI_Attrs {
    size_t struct_size;
    XLA_FFI_Extension_Base* extension_start;
    int64_t size;
    XLA_FFI_AttrType* types;
    XLA_FFI_ByteSpan** names;
    void** attrs;
} XLA_FFI_Attrs;

typedef struct XLA_FFI_CallFrame {
    size_t struct_size;
    XLA_FFI_Extension_Base* extension_start;
    const XLA_FFI_Api* api;
    XLA_FFI_ExecutionContext* ctx;
    XLA_FFI_ExecutionStage stage;
    XLA_FFI_Args args;
    XLA_FFI_Rets rets;
    XLA_FFI_Attrs attrs;
    XLA_FFI_Future* future;
} XLA_FFI_CallFrame;

typedef uint32_t XLA_FFI_Handler_Traits;

typedef struct XLA_FFI_Metadata {
    size_t struct_size;
    XLA_FFI_Api_Version api_version;
    XLA_FFI_Handler_Traits traits;
    XLA_FFI_TypeId state_type_id;
} XLA_FFI_Metadata;

typedef struct XLA_FFI_Metadata_Extension {
    XLA_FFI_Extension_Base extension_base;
    XLA_FFI_Metadata* metadata;
} XLA_FFI_Metadata_Extension;

struct XLA_FFI_Api {
    size_t struct_size;
    XLA_FFI_Extension_Base* extension_start;
    XLA_FFI_Api_Version api_version;
    const XLA_FFI_InternalApi* internal_api;
    XLA_FFI_Error_Create* error_create;
};

#ifdef __cplusplus
}
#endif

#endif  // PYOP_ENTRY_XLA_C_API_H
