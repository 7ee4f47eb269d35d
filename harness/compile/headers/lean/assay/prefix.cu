// What the host compiler reads in place of the sketch; made into a precompiled header.
#include <torch/types.h>

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif
#ifdef ASSAY_WANTS_CUDA_CONTEXT
#include <ATen/cuda/CUDAContext.h>
#endif
#ifdef ASSAY_BINDS_IN_CUDA
#include <torch/csrc/utils/pybind.h>

#include <torch/csrc/Exceptions.h>
#endif

#include "../../layout.h"

extern int assay_end_of_headers;
