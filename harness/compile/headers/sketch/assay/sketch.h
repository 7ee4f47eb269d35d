// What host code of a kernel file sees of torch while nvcc's own front ends (cudafe++, cicc) read it.
//
// They only have to know which kernels are launched with which template arguments: their output for host code is source
// text again, and the host compiler reads that beside the real headers, which decide what it means. Constants alone are
// written down as they come out here, so they are torch's own, as macros are; sizes are those of torch's classes
// (layout.h), and sources that ask for other properties of these are read with the real headers (fitness.BEYOND). Otherwise
// a sketch may be incomplete and loose: what does not parse, or launches a kernel that the device pass did not make, is a
// build error, and the real headers follow.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <math.h>
#include <optional>
#include <stdlib.h>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// All that assay/aten.h includes, for sources that use more of the standard library than the few above.
#ifdef ASSAY_WANTS_STD
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#endif

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <ATen/Dispatch.h>
#include <ATen/core/TensorAccessor.h>
#include <c10/core/Device.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

namespace caffe2 {
struct alignas(2) TypeMeta {
  char bytes_[2];
  size_t itemsize() const;
  template <class T> static TypeMeta Make();
  template <class T> bool operator==(const T&) const;
  template <class T> bool operator!=(const T&) const;
};
} // namespace caffe2

namespace c10 {
struct alignas(2) TensorOptions {
  char bytes_[8];
  TensorOptions();
  template <class T> TensorOptions(T);
  template <class T> TensorOptions dtype(T) const;
  template <class T> TensorOptions device(T) const;
  TensorOptions device(DeviceType, DeviceIndex) const;
  template <class T> TensorOptions layout(T) const;
  template <class T> TensorOptions requires_grad(T) const;
  template <class T> TensorOptions memory_format(T) const;
  template <class T> TensorOptions pinned_memory(T) const;
};
template <class T> TensorOptions dtype(T);
template <class T> TensorOptions device(T);
struct alignas(16) Scalar {
  char bytes_[32];
  Scalar();
  Scalar(const Scalar&);
  ~Scalar();
  Scalar& operator=(const Scalar&);
  template <class T> Scalar(T);
  template <class T> T to() const;
  double toDouble() const;
  int64_t toLong() const;
};
} // namespace c10

// Streams and guards, where this torch has them. The macros of CUDAException.h are torch's own.
#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
#include <c10/cuda/CUDAException.h>

namespace c10::cuda {
struct alignas(8) CUDAStream {
  char bytes_[16];
  operator cudaStream_t() const;
  cudaStream_t stream() const;
  void synchronize() const;
  DeviceIndex device_index() const;
};
CUDAStream getCurrentCUDAStream(DeviceIndex = -1);
CUDAStream getDefaultCUDAStream(DeviceIndex = -1);
CUDAStream getStreamFromPool(bool = false, DeviceIndex = -1);
CUDAStream getStreamFromPool(int, DeviceIndex = -1);
DeviceIndex device_count() noexcept;
DeviceIndex current_device();
void set_device(DeviceIndex);
template <class T> struct Guard_ {
  template <class... A> explicit Guard_(A...);
  Guard_(const Guard_&) = delete;
  ~Guard_();
};
struct alignas(8) CUDAGuard : Guard_<Device> {
  char bytes_[16];
  using Guard_::Guard_;
};
struct alignas(8) OptionalCUDAGuard : Guard_<Device> {
  char bytes_[24];
  using Guard_::Guard_;
};
struct alignas(8) CUDAStreamGuard : Guard_<CUDAStream> {
  char bytes_[64];
  using Guard_::Guard_;
};
} // namespace c10::cuda

// Handles of libraries and properties of the card, for sources that name them (operators.WANTED).
#ifdef ASSAY_WANTS_CUDA_CONTEXT
#include <cusparse.h>
#include <cublas_v2.h>
#include <cublasLt.h>
#include <cusolverDn.h>

namespace at::cuda {
int64_t getNumGPUs();
bool is_available();
int warp_size();
cudaDeviceProp* getCurrentDeviceProperties();
cudaDeviceProp* getDeviceProperties(c10::DeviceIndex);
bool canDeviceAccessPeer(c10::DeviceIndex, c10::DeviceIndex);
cusparseHandle_t getCurrentCUDASparseHandle();
cublasHandle_t getCurrentCUDABlasHandle();
cublasLtHandle_t getCurrentCUDABlasLtHandle();
cusolverDnHandle_t getCurrentCUDASolverDnHandle();
} // namespace at::cuda
#endif
#endif

namespace at {
class Tensor {
  void* data_;

 public:
  Tensor();
  Tensor(const Tensor&);
  Tensor(Tensor&&) noexcept;
  ~Tensor();
  Tensor& operator=(const Tensor&);
  Tensor& operator=(Tensor&&) noexcept;
  template <class T> Tensor& operator=(T);

  template <class T> T* data_ptr() const;
  void* data_ptr() const;
  template <class T> const T* const_data_ptr() const;
  const void* const_data_ptr() const;
  template <class T> T* mutable_data_ptr() const;
  void* mutable_data_ptr() const;

  bool defined() const;
  bool has_storage() const;
  bool is_cuda() const;
  bool is_cpu() const;
  bool is_same(const Tensor&) const;
  bool is_contiguous() const;
  bool is_contiguous(MemoryFormat) const;
  bool is_floating_point() const;
  bool is_complex() const;
  bool is_non_overlapping_and_dense() const;
  bool is_sparse() const;
  bool requires_grad() const;
  int64_t dim() const;
  int64_t ndimension() const;
  int64_t numel() const;
  int64_t size(int64_t) const;
  int64_t stride(int64_t) const;
  int64_t storage_offset() const;
  int64_t element_size() const;
  size_t itemsize() const;
  size_t nbytes() const;
  DeviceIndex get_device() const;
  IntArrayRef sizes() const;
  IntArrayRef strides() const;
  ScalarType scalar_type() const;
  caffe2::TypeMeta dtype() const;
  Device device() const;
  TensorOptions options() const;
  MemoryFormat suggest_memory_format() const;
  template <class T> T item() const;
  Scalar item() const;

#define ASSAY_ACCESSOR(name, type)                                                           \
  template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits>           \
  type<T, N, Traits> name() const&;                                                          \
  template <class T, size_t N, template <class U> class Traits = DefaultPtrTraits>           \
  type<T, N, Traits> name() && = delete;
  ASSAY_ACCESSOR(packed_accessor32, PackedTensorAccessor32)
  ASSAY_ACCESSOR(packed_accessor64, PackedTensorAccessor64)
#undef ASSAY_ACCESSOR
  template <class T, size_t N> TensorAccessor<T, N> accessor() const&;
  template <class T, size_t N> TensorAccessor<T, N> accessor() && = delete;

  std::vector<Tensor> unbind(int64_t = 0) const;
  std::vector<Tensor> split(int64_t, int64_t = 0) const;
  std::vector<Tensor> chunk(int64_t, int64_t = 0) const;

  Tensor operator[](int64_t) const;
  Tensor operator-() const;
  Tensor operator~() const;
  template <class T> Tensor& operator+=(const T&);
  template <class T> Tensor& operator-=(const T&);
  template <class T> Tensor& operator*=(const T&);
  template <class T> Tensor& operator/=(const T&);

// Methods that return a tensor, whatever they take.
#define ASSAY_METHOD(name)                                                              \
  template <class... A> Tensor name(const A&...) const;                                 \
  template <class... A> Tensor name(std::initializer_list<int64_t>, const A&...) const;
#define ASSAY_METHODS(_)                                                                                               \
  _(abs) _(add) _(add_) _(addmm) _(amax) _(amin) _(argmax) _(as_strided) _(bmm) _(clamp) _(clamp_min) _(clone)         \
  _(contiguous) _(copy_) _(cpu) _(cuda) _(cumsum) _(detach) _(div) _(div_) _(exp) _(expand) _(expand_as) _(fill_)      \
  _(flatten) _(flip) _(floor) _(index_select) _(log) _(masked_fill) _(matmul) _(mean) _(mm) _(mul) _(mul_) _(mv)       \
  _(narrow) _(neg) _(norm) _(permute) _(pow) _(reciprocal) _(relu) _(repeat) _(repeat_interleave) _(reshape)           \
  _(reshape_as) _(round) _(rsqrt) _(select) _(sigmoid) _(slice) _(softmax) _(sqrt) _(square) _(squeeze) _(sub) _(sub_) \
  _(sum) _(t) _(tanh) _(to) _(toType) _(transpose) _(tril) _(triu) _(type_as) _(unsqueeze) _(var) _(view) _(view_as)   \
  _(where) _(zero_)
  ASSAY_METHODS(ASSAY_METHOD)
#undef ASSAY_METHODS
#undef ASSAY_METHOD
};
using TensorList = c10::ArrayRef<Tensor>;
std::optional<Device> device_of(const Tensor&);
std::optional<Device> device_of(const std::optional<Tensor>&);
std::optional<Device> device_of(TensorList);

#define ASSAY_OPERATOR(op)                                                 \
  Tensor operator op(const Tensor&, const Tensor&);                        \
  Tensor operator op(const Tensor&, const Scalar&);                        \
  Tensor operator op(const Scalar&, const Tensor&);
ASSAY_OPERATOR(+) ASSAY_OPERATOR(-) ASSAY_OPERATOR(*) ASSAY_OPERATOR(/) ASSAY_OPERATOR(<) ASSAY_OPERATOR(>)
ASSAY_OPERATOR(<=) ASSAY_OPERATOR(>=) ASSAY_OPERATOR(==) ASSAY_OPERATOR(!=)
#undef ASSAY_OPERATOR

// Functions that return a tensor, whatever they take: those of lean.POPULAR.
#define ASSAY_FUNCTION(name)                                                      \
  template <class... A> Tensor name(const A&...);                                 \
  template <class... A> Tensor name(std::initializer_list<int64_t>, const A&...); \
  template <class... A> Tensor name(std::initializer_list<Tensor>, const A&...);
#define ASSAY_FUNCTIONS(_)                                                                                              \
  _(abs) _(add) _(addmm) _(arange) _(bmm) _(cat) _(clamp) _(clone) _(div) _(dot) _(einsum) _(empty) _(empty_like)       \
  _(empty_strided) _(exp) _(eye) _(fill) _(from_blob) _(full) _(full_like) _(gelu) _(linear) _(log) _(log_softmax)      \
  _(matmul) _(maximum) _(mean) _(minimum) _(mm) _(mul) _(mv) _(narrow) _(neg) _(ones) _(ones_like) _(pow) _(rand)       \
  _(rand_like) _(randn) _(randn_like) _(relu) _(rsqrt) _(sigmoid) _(silu) _(softmax) _(sqrt) _(stack) _(sub) _(sum)     \
  _(tanh) _(transpose) _(zeros) _(zeros_like)
ASSAY_FUNCTIONS(ASSAY_FUNCTION)
#undef ASSAY_FUNCTIONS
template <class A, class B> Tensor where(const Tensor&, const A&, const B&);
std::vector<Tensor> where(const Tensor&);
#undef ASSAY_FUNCTION
} // namespace at

// torch's own torch/types.h for the constants and aliases of namespace torch.
#define ASSAY_WITHIN_TYPES
#include_next <torch/types.h>
#undef ASSAY_WITHIN_TYPES

#include "../../layout.h"

// Where the text to keep begins.
extern int assay_end_of_headers;
