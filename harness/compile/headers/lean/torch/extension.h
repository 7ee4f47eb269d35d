// Stands in for torch's umbrella header: Tensor, operators by name and the Python binding, without autograd, nn and jit.
#include <torch/types.h>

// A kernel file pays for pybind11 only where it binds something itself.
#if !defined(__CUDACC__) || defined(ASSAY_BINDS_IN_CUDA)
#include <torch/csrc/utils/pybind.h>

#include <torch/csrc/Exceptions.h>
#endif
