// Streams without the headers of every CUDA library; all of it where the source names more.
#include <assay/operators.h>
#ifdef ASSAY_WANTS_CUDA_CONTEXT
#include_next <ATen/cuda/CUDAContext.h>
#else
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif
