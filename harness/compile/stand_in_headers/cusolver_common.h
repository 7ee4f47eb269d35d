// Stand-in where cuSOLVER is not installed: the types that PyTorch's CUDA headers name. Found last, so the real one wins.
#pragma once
#include <library_types.h>

typedef enum { CUSOLVER_STATUS_SUCCESS = 0, CUSOLVER_STATUS_INVALID_VALUE = 3 } cusolverStatus_t;
