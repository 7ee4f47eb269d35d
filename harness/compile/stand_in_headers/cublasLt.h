// Stand-in where cuBLAS is not installed: the types that PyTorch's CUDA headers name. Found last, so the real one wins.
#pragma once
#include <cublas_v2.h>

typedef struct cublasLtContext* cublasLtHandle_t;
