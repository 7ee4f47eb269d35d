// Stand-in where cuSPARSE is not installed: the types that PyTorch's CUDA headers name. Found last, so the real one wins.
#pragma once
#include <cuda_runtime_api.h>
#include <library_types.h>

typedef enum { CUSPARSE_STATUS_SUCCESS = 0 } cusparseStatus_t;
typedef struct cusparseContext* cusparseHandle_t;

extern "C" const char* cusparseGetErrorString(cusparseStatus_t status);
