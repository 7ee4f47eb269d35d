// What device code and constants can see of classes that the sketch stands in for: size, alignment, whether it is copied
// as bytes. A kernel may take a struct that holds one. Checked on the sketch in every build, on torch's own when the
// headers are precompiled: without agreement there is no sketch.
#define ASSAY_CHECK_LAYOUT(type, bytes, alignment, trivial)                                 \
  static_assert(sizeof(type) == (bytes) && alignof(type) == (alignment), #type " is laid out otherwise"); \
  static_assert(std::is_trivially_copyable_v<type> == (trivial), #type " is copied otherwise");

ASSAY_CHECK_LAYOUT(at::Tensor, 8, 8, false)
ASSAY_CHECK_LAYOUT(c10::Scalar, 32, 16, false)
ASSAY_CHECK_LAYOUT(c10::TensorOptions, 8, 2, true)
ASSAY_CHECK_LAYOUT(caffe2::TypeMeta, 2, 2, true)
#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
ASSAY_CHECK_LAYOUT(c10::cuda::CUDAStream, 16, 8, true)
ASSAY_CHECK_LAYOUT(c10::cuda::CUDAGuard, 16, 8, false)
ASSAY_CHECK_LAYOUT(c10::cuda::OptionalCUDAGuard, 24, 8, false)
ASSAY_CHECK_LAYOUT(c10::cuda::CUDAStreamGuard, 64, 8, false)
#endif
#undef ASSAY_CHECK_LAYOUT
