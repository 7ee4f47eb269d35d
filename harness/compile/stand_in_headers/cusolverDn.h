// Stand-in where cuSOLVER is not installed: the types that PyTorch's CUDA headers name. Found last, so the real one wins.
#pragma once
#include <cublas_v2.h>
#include <cusolver_common.h>

typedef struct cusolverDnContext* cusolverDnHandle_t;
