"""The triangle's product in float32 from three in half precision on Hopper's tensor cores, where the triangle is.

tril(A) B = high high + high low + low high: high is a number rounded to half precision, low what is left of it, both
scaled by powers of two. How numbers are split and how stages go round is told in `matmul/square/split_wgmma`.

What is new is who does what. A pair of neighbouring row tiles needs as many steps of the inner dimension as there are
before its diagonal's end. The longer half of the pairs is shared, each by two clusters that take half of the steps, and
the longest come first: no cluster has more than half of a full row to do, and short ones fill the gaps. Sums are added
to zeros by atomic additions, in no fixed order where two clusters share.

3 n³ FLOP on tensor cores and some more at the diagonal (2.9e10 at full size), half of the full product's. Splitting
reads and writes 6 n² bytes each and 4 n² bytes are zeroed; results are added once to six times. Limit: the tensor
cores, and the clusters that are done last.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor tril_matmul(const at::Tensor& a, const at::Tensor& b);"

# Plain CUDA, without PyTorch: raw pointers and a stream.
KERNEL_SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

// Blocks of a cluster work on neighbouring rows and the same columns of the product; each loads its share of B for all.
constexpr int kCluster = 2;
constexpr int kSlice = 512;  // of the inner dimension, after which sums leave the tensor cores

constexpr int kWarp = 32, kWarpgroup = 128, kConsumers = 2, kThreads = (1 + kConsumers) * kWarpgroup;
constexpr int kRows = 64;                               // of the result, of a warpgroup: the m of its products
constexpr int kBlockRows = kConsumers * kRows;
constexpr int kColumns = 256;                           // of the result, for both warpgroups: the n of their products
constexpr int kStep = 32;                               // of the inner dimension, in a stage
constexpr int kLineBytes = 128;                         // the width of a swizzle
constexpr int kPanelColumns = kLineBytes / 2, kPanels = kColumns / kPanelColumns;
constexpr int kPanelLines = 2 * kStep;
constexpr int kBytesA = kBlockRows * kLineBytes, kBytesB = kPanels * kPanelLines * kLineBytes;
constexpr int kStages = 4, kStageBytes = kBytesA + kBytesB;
static_assert(kBytesA % 1024 == 0 && kBytesB / kCluster % 1024 == 0);

struct alignas(1024) Shared {  // the swizzle pattern repeats every 1024 bytes, counted from address 0
  char ring[kStages][kStageBytes];
  uint64_t full[kStages], empty[kStages];
};

struct Product {
  int rows, columns, inner;             // multiples of eight
  char *a, *b;                          // halves: (row_tiles, steps, kBytesA), (column_tiles, steps, kBytesB)
  float *unscale_row, *unscale_column;  // what a result has to be multiplied by: (padded_rows), (padded_columns)
  float* c;                             // (padded_rows, padded_columns)

  __host__ __device__ int steps() const { return (inner + kStep - 1) / kStep; }
  __host__ __device__ int row_tiles() const {  // as many as clusters have blocks
    return (rows + kCluster * kBlockRows - 1) / (kCluster * kBlockRows) * kCluster;
  }
  __host__ __device__ int column_tiles() const { return (columns + kColumns - 1) / kColumns; }
  __host__ __device__ int pairs() const { return row_tiles() / kCluster; }
  __host__ __device__ int shared_pairs() const { return pairs() - pairs() / 2; }  // that two clusters work on
  __host__ __device__ int clusters() const { return (pairs() + shared_pairs()) * column_tiles(); }
  __host__ __device__ int steps_of(int pair) const {  // until its diagonal's end
    const int own = (pair + 1) * kCluster * kBlockRows / kStep;
    return own < steps() ? own : steps();
  }
  __host__ __device__ int64_t padded_rows() const { return int64_t{row_tiles()} * kBlockRows; }
  __host__ __device__ int64_t padded_columns() const { return int64_t{column_tiles()} * kColumns; }
};

// What a block does: a tile of the result, of which it adds up `count` steps from `begin` on.
struct Job {
  int row_tile, column_tile, begin, count;

  // By length, the longest first: with pair - 1 shared, half of its steps are as many as all of pair / 2 - 1.
  __device__ explicit Job(const Product& product) {
    const int cluster = blockIdx.x / kCluster, unshared = product.pairs() - product.shared_pairs();
    int number = cluster / product.column_tiles(), pair = product.pairs();
    const auto jobs = [&] { return (pair > unshared ? 2 : 0) + (pair % 2 == 0 ? 1 : 0); };
    for (; number >= jobs(); --pair) number -= jobs();
    const bool is_shared = pair > unshared && number < 2;
    pair = is_shared ? pair - 1 : pair / 2 - 1;
    const int steps = product.steps_of(pair);
    row_tile = pair * kCluster + blockIdx.x % kCluster;
    column_tile = cluster % product.column_tiles();
    begin = is_shared && number == 1 ? steps / 2 : 0;
    count = (is_shared && number == 0 ? steps / 2 : steps) - begin;
  }
};

// ---- splitting -----------------------------------------------------------------------------------------------------

constexpr int kSplitThreads = 512;
constexpr int kSplitRows = kSplitThreads / kWarp;  // of A, of a block: one of each warp
constexpr int kSplitColumns = 16;                  // of B, of a block: eight of each thread

__device__ float power_of_two(int exponent) { return __int_as_float((exponent + 127) << 23); }  // -126 to 127

// For a row or column whose largest absolute value has these bits: it comes to lie between 2^13 and 2^14, so that the
// low halves of much smaller ones are no subnormal numbers.
__device__ int power_for(uint32_t top) { return min(13 - (static_cast<int>(top >> 23) - 127), 126); }

struct Eight {  // neighbours in memory
  float values[8];

  __device__ Eight(const float* from, bool exist) {
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      const float4 v = exist ? __ldg(reinterpret_cast<const float4*>(from + i)) : float4{0, 0, 0, 0};
      values[i] = v.x, values[i + 1] = v.y, values[i + 2] = v.z, values[i + 3] = v.w;
    }
  }

  // Only the first so many; zeros after them.
  __device__ void keep(int count) {
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] = i < count ? values[i] : 0;
  }

  // Absolute values are in the order of their bits.
  __device__ uint32_t bits(int i) const { return __float_as_uint(values[i]) & 0x7fffffff; }

  // Numbers times `scale` in halves: 16 bytes of high ones, 16 of low ones. Infinities make NaN.
  __device__ void split(const float (&scale)[8], uint4* high, uint4* low) const {
    alignas(16) __half2 rounded[4], rest[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      rounded[i] = __floats2half2_rn(values[2 * i] * scale[2 * i], values[2 * i + 1] * scale[2 * i + 1]);
      const float2 back = __half22float2(rounded[i]);
      rest[i] = __floats2half2_rn(fmaf(values[2 * i], scale[2 * i], -back.x),
                                  fmaf(values[2 * i + 1], scale[2 * i + 1], -back.y));
    }
    *high = *reinterpret_cast<const uint4*>(rounded);
    *low = *reinterpret_cast<const uint4*>(rest);
  }
};

// Where a unit of 16 bytes of a line lies. Swizzled: the same unit of eight lines is in eight different places, which
// products read from different banks.
__device__ uint4* unit_of(char* lines, int64_t line, int unit) {
  return reinterpret_cast<uint4*>(lines + line * kLineBytes + (unit ^ line % 8) * 16);
}

// A warp a row of A, as far as its diagonal. A line is of one row: 32 high halves, then 32 low ones.
__device__ void split_row(const float* a, const Product& product, int row) {
  if (row >= product.rows) return;
  const float* line = a + int64_t{row} * product.inner;
  const int lane = threadIdx.x % kWarp;
  uint32_t top = 0;
#pragma unroll 4
  for (int k = lane * 8; k <= row; k += kWarp * 8) {
    Eight eight(line + k, true);
    eight.keep(row + 1 - k);
    for (int i = 0; i < 8; ++i) top = max(top, eight.bits(i));
  }
  const int power = power_for(__reduce_max_sync(0xffffffffu, top));
  float scale[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) scale[i] = power_of_two(power);
#pragma unroll 4
  for (int k = lane * 8; k < product.steps_of(row / kBlockRows / kCluster) * kStep; k += kWarp * 8) {
    const int64_t at = (int64_t{row / kBlockRows} * product.steps() + k / kStep) * kBlockRows + row % kBlockRows;
    const int unit = k % kStep / 8;
    Eight eight(line + k, k <= row);
    eight.keep(row + 1 - k);
    eight.split(scale, unit_of(product.a, at, unit), unit_of(product.a, at, unit + 4));
  }
  if (lane == 0) product.unscale_row[row] = power_of_two(-power);
}

// A block 16 columns of B. A panel is of 64 columns: a line of high halves for each of 32 rows, then those of low ones.
__device__ void split_columns(const float* b, const Product& product, int column) {
  __shared__ uint32_t tops[kSplitColumns];
  constexpr int kAcross = kSplitColumns / 8, kDown = kSplitThreads / kAcross;
  const int across = threadIdx.x % kAcross * 8, down = threadIdx.x / kAcross;
  const auto row = [&](int k) {
    const int own = column + across;
    return Eight(b + int64_t{k} * product.columns + own, k < product.inner && own < product.columns);
  };
  if (threadIdx.x < kSplitColumns) tops[threadIdx.x] = 0;
  __syncthreads();
  uint32_t own[8] = {};
#pragma unroll 4
  for (int k = down; k < product.inner; k += kDown) {
    const Eight eight = row(k);
    for (int i = 0; i < 8; ++i) own[i] = max(own[i], eight.bits(i));
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    for (int apart = kAcross; apart < kWarp; apart *= 2)
      own[i] = max(own[i], __shfl_xor_sync(0xffffffffu, own[i], apart));
    if (threadIdx.x % kWarp < kAcross) atomicMax(&tops[across + i], own[i]);
  }
  __syncthreads();
  float scale[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) scale[i] = power_of_two(power_for(tops[across + i]));
  const int panel = column / kPanelColumns, unit = (column + across) % kPanelColumns / 8;
#pragma unroll 4
  for (int k = down; k < product.steps() * kStep; k += kDown) {
    const int64_t step = int64_t{panel / kPanels} * product.steps() + k / kStep;
    const int64_t line = (step * kPanels + panel % kPanels) * kPanelLines + k % kStep;
    row(k).split(scale, unit_of(product.b, line, unit), unit_of(product.b, line + kStep, unit));
  }
  if (threadIdx.x < kSplitColumns)
    product.unscale_column[column + threadIdx.x] = power_of_two(-power_for(tops[threadIdx.x]));
}

__global__ void __launch_bounds__(kSplitThreads)
    split(const float* a, const float* b, const Product product, int row_blocks) {
  if (blockIdx.x < row_blocks)
    split_row(a, product, blockIdx.x * kSplitRows + threadIdx.x / kWarp);
  else
    split_columns(b, product, (blockIdx.x - row_blocks) * kSplitColumns);
}

// ---- barriers ------------------------------------------------------------------------------------------------------

__device__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ void init_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

__device__ void wait(uint32_t barrier, uint32_t parity) {
  for (uint32_t done = 0; done == 0;)
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
}

__device__ void arrive_expecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// At the barrier of the same place in another block of the cluster.
__device__ void arrive_at(uint32_t barrier, uint32_t block) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier),
      "r"(block)
      : "memory");
}

__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// ---- the copy engine -----------------------------------------------------------------------------------------------

__device__ void copy(uint32_t target, const char* source, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target),
               "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(barrier)
               : "memory");
}

// To the same place in every block of the cluster, at whose own barrier the bytes are counted.
__device__ void copy_to_all(uint32_t target, const char* source, uint32_t bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1], %2, [%3], %4;" ::"r"(target),
      "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(barrier), "h"(static_cast<uint16_t>((1 << kCluster) - 1))
      : "memory");
}

// ---- products ------------------------------------------------------------------------------------------------------

// How an operand lies in shared memory: lines of 128 swizzled bytes, eight lines (1024 bytes) after one another, all in
// units of 16 bytes. `across` is the distance from one panel of B to the next; A has it ignored.
__device__ uint64_t describe(uint32_t address, uint32_t across) {
  constexpr uint64_t kSwizzle128 = 1;
  return (kSwizzle128 << 62) | (uint64_t{1024 / 16} << 32) | (uint64_t{across / 16} << 16) | ((address & 0x3ffff) >> 4);
}

__device__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int kPending>
__device__ void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

#define SUMS_8(d, i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define SUMS_32(d, i) SUMS_8(d, i), SUMS_8(d, i + 8), SUMS_8(d, i + 16), SUMS_8(d, i + 24)

// d (64 x 256) = a (64 x 16) b (16 x 256), added to what d holds if `add`
__device__ void multiply(float (&d)[128], uint64_t a, uint64_t b, int add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p, 1, 1, 0, 1;\n"
      "}\n"
      : SUMS_32(d, 0), SUMS_32(d, 32), SUMS_32(d, 64), SUMS_32(d, 96)
      : "l"(a), "l"(b), "r"(add));
}

// Whoever reads or writes these afterwards does so after the statements before.
__device__ void pin(float (&sums)[128]) {
#pragma unroll
  for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// ---- the producer: one thread that keeps the ring full -------------------------------------------------------------

__device__ void produce(const Product& product, Shared& shared) {
  const Job job(product);
  const int share = kBytesB / kCluster, own = blockIdx.x % kCluster * share;
  const char* a = product.a + (int64_t{job.row_tile} * product.steps() + job.begin) * kBytesA;
  const char* b = product.b + (int64_t{job.column_tile} * product.steps() + job.begin) * kBytesB;
  for (int step = 0; step < job.count; ++step) {
    const int slot = step % kStages;
    const uint32_t full = shared_address(&shared.full[slot]), target = shared_address(shared.ring[slot]);
    // A new barrier counts as having completed the phase before its first: the first round does not wait.
    wait(shared_address(&shared.empty[slot]), step / kStages % 2 ^ 1);
    arrive_expecting(full, kStageBytes);
    copy(target, a + int64_t{step} * kBytesA, kBytesA, full);
    copy_to_all(target + kBytesA + own, b + int64_t{step} * kBytesB + own, share, full);
  }
}

// ---- the consumers: a warpgroup each -------------------------------------------------------------------------------

// Every block of the cluster writes into this slot of all blocks, so all are told that it is free.
__device__ void release(Shared& shared, int step) {
  const uint32_t block = threadIdx.x % kWarpgroup;
  if (block < kCluster) arrive_at(shared_address(&shared.empty[step % kStages]), block);
}

// The products of some steps, in the scales' units. The tensor cores always have the next stage's waiting.
__device__ void make_sums(float (&sums)[128], int first, int end, Shared& shared, int warpgroup) {
  for (int step = first; step < end; ++step) {
    const int slot = step % kStages;
    wait(shared_address(&shared.full[slot]), step / kStages % 2);
    const uint32_t stage = shared_address(shared.ring[slot]);
    // Low halves are 64 bytes further in the lines of A, and 32 lines further in the panels of B.
    const uint64_t a = describe(stage + warpgroup * kRows * kLineBytes, 0), low_a = a + kStep * 2 / 16;
    const uint64_t b = describe(stage + kBytesA, kPanelLines * kLineBytes), low_b = b + kStep * kLineBytes / 16;
    products_begin();
#pragma unroll
    for (int i = 0; i < kStep / 16; ++i) {
      const int next_a = i * 16 * 2 / 16, next_b = i * 16 * kLineBytes / 16;  // 16 columns of A, 16 rows of B
      multiply(sums, low_a + next_a, b + next_b, step > first || i > 0);
      multiply(sums, a + next_a, low_b + next_b, 1);
      multiply(sums, a + next_a, b + next_b, 1);
    }
    products_commit();
    products_wait<1>();
    if (step > first) release(shared, step - 1);
  }
  products_wait<0>();
  release(shared, end - 1);
  pin(sums);
}

// Onto the result. A thread's 128 sums are of two rows, eight apart: sums[i] is of row i / 2 % 2 and of column
// i / 4 * 8 + lane % 4 * 2 + i % 2.
__device__ void put(const float (&sums)[128], const Product& product, int row, int column) {
  constexpr int kGroup = 8;  // pairs of columns whose scales are loaded together
  const float unscale_row[2] = {product.unscale_row[row], product.unscale_row[row + 8]};
  const int64_t pitch = product.padded_columns();
  float* target[2] = {product.c + row * pitch + column, product.c + (row + 8) * pitch + column};
#pragma unroll
  for (int first = 0; first < kColumns / 8; first += kGroup) {
    float2 unscale[kGroup];
#pragma unroll
    for (int i = 0; i < kGroup; ++i)
      unscale[i] = *reinterpret_cast<const float2*>(product.unscale_column + column + (first + i) * 8);
#pragma unroll
    for (int i = 0; i < kGroup * 2; ++i) {
      const float* sum = sums + (first * 2 + i) * 2;
      const float2 by = unscale[i / 2], pair = {sum[0] * unscale_row[i % 2] * by.x, sum[1] * unscale_row[i % 2] * by.y};
      atomicAdd(reinterpret_cast<float2*>(target[i % 2] + (first + i / 2) * 8), pair);
    }
  }
}

__device__ void consume(const Product& product, Shared& shared, int warpgroup) {
  const Job job(product);
  const int thread = threadIdx.x % kWarpgroup;
  const int row = job.row_tile * kBlockRows + warpgroup * kRows + thread / kWarp * 16 + thread % kWarp / 4;
  const int column = job.column_tile * kColumns + thread % 4 * 2;
  // The first slice ends after one to four quarters of its length.
  constexpr int kLength = kSlice / kStep;
  const int quarter = (blockIdx.x / kCluster * kConsumers + warpgroup) % 4;
  float sums[128];
  for (int first = 0, end = kLength - quarter * kLength / 4; first < job.count; first = end, end += kLength) {
    end = min(end, job.count);
    make_sums(sums, first, end, shared, warpgroup);
    put(sums, product, row, column);
  }
}

// c += tril(a) b, a block a job. What is padded comes of whatever lies there.
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1) multiply_all(const Product product) {
  extern __shared__ __align__(1024) char raw[];
  Shared& shared = *reinterpret_cast<Shared*>(raw);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kStages; ++slot) {
      init_barrier(shared_address(&shared.full[slot]), 1);
      init_barrier(shared_address(&shared.empty[slot]), kConsumers * kCluster);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();  // nobody may be sent bytes or arrivals before its barriers exist
  // Registers go to those who multiply.
  if (threadIdx.x < kWarpgroup) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == 0) produce(product, shared);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume(product, shared, threadIdx.x / kWarpgroup - 1);
  }
  __syncwarp();
  cluster_sync();  // nobody may leave while others still write here
}

// ---- host ----------------------------------------------------------------------------------------------------------

// a and b start at multiples of 16 bytes.
inline cudaError_t launch(const float* a, const float* b, const Product& product, cudaStream_t stream) {
  const int row_blocks = (product.rows + kSplitRows - 1) / kSplitRows;
  const int column_blocks = (product.columns + kSplitColumns - 1) / kSplitColumns;
  split<<<row_blocks + column_blocks, kSplitThreads, 0, stream>>>(a, b, product, row_blocks);
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(multiply_all, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  if (error != cudaSuccess) return error;
  multiply_all<<<product.clusters() * kCluster, kThreads, sizeof(Shared), stream>>>(product);
  return cudaGetLastError();
}
"""

BINDING_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

// Filled up with zeros to multiples of eight.
at::Tensor pad(const at::Tensor& matrix) {
  const int64_t down = (8 - matrix.size(0) % 8) % 8, across = (8 - matrix.size(1) % 8) % 8;
  return down + across > 0 ? at::constant_pad_nd(matrix, {0, across, 0, down}) : matrix;
}

at::Tensor tril_matmul(const at::Tensor& a_in, const at::Tensor& b_in) {
  TORCH_CHECK_NOT_IMPLEMENTED(a_in.is_cuda() && b_in.is_cuda() && a_in.scalar_type() == at::kFloat &&
                                  b_in.scalar_type() == at::kFloat && a_in.is_contiguous() && b_in.is_contiguous(),
                              "split_wgmma takes contiguous float32 on CUDA");
  TORCH_CHECK(a_in.dim() == 2 && b_in.dim() == 2 && a_in.size(0) == a_in.size(1) && a_in.size(1) == b_in.size(0),
              "cannot multiply a triangle of ", a_in.sizes(), " by ", b_in.sizes());
  const c10::cuda::CUDAGuard guard(a_in.device());
  const auto* card = at::cuda::getCurrentDeviceProperties();
  TORCH_CHECK_NOT_IMPLEMENTED(card->major == 9 && card->minor == 0,
                              "split_wgmma is written in instructions of compute capability 9.0 alone, this is ",
                              card->major, ".", card->minor);
  const auto fits = [](int64_t size) { return size > 0 && size <= 1 << 30; };
  TORCH_CHECK_NOT_IMPLEMENTED(fits(a_in.size(0)) && fits(a_in.size(1)) && fits(b_in.size(1)),
                              "split_wgmma takes 1 to 2^30 rows and columns");
  const at::Tensor a = pad(a_in), b = pad(b_in);
  TORCH_CHECK_NOT_IMPLEMENTED(
      (reinterpret_cast<uintptr_t>(a.const_data_ptr()) | reinterpret_cast<uintptr_t>(b.const_data_ptr())) % 16 == 0,
      "split_wgmma takes tensors that start at a multiple of 16 bytes");
  Product product = {static_cast<int>(a.size(0)), static_cast<int>(b.size(1)), static_cast<int>(a.size(1))};
  const auto floats = a.options(), bytes = floats.dtype(at::kChar);
  const at::Tensor halves_a = at::empty({int64_t{product.row_tiles()} * product.steps() * kBytesA}, bytes),
                   halves_b = at::empty({int64_t{product.column_tiles()} * product.steps() * kBytesB}, bytes),
                   unscale_row = at::empty({product.padded_rows()}, floats),
                   unscale_column = at::empty({product.padded_columns()}, floats),
                   c = at::zeros({product.padded_rows(), product.padded_columns()}, floats);
  product.a = static_cast<char*>(halves_a.mutable_data_ptr());
  product.b = static_cast<char*>(halves_b.mutable_data_ptr());
  product.unscale_row = unscale_row.mutable_data_ptr<float>();
  product.unscale_column = unscale_column.mutable_data_ptr<float>();
  product.c = c.mutable_data_ptr<float>();
  C10_CUDA_CHECK(launch(a.const_data_ptr<float>(), b.const_data_ptr<float>(), product,
                        c10::cuda::getCurrentCUDAStream()));
  return c.narrow(0, 0, a_in.size(0)).narrow(1, 0, b_in.size(1)).contiguous();  // a copy if anything was padded
}
"""

# wgmma and setmaxnreg exist only in the target with the a.
extension = load_inline(
    name="assay_triangular_split_wgmma",
    cpp_sources=CPP_SOURCE,
    cuda_sources=[KERNEL_SOURCE, BINDING_SOURCE],
    functions=["tril_matmul"],
    extra_cuda_cflags=["-gencode=arch=compute_90a,code=sm_90a"],
)


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return extension.tril_matmul(a, b)
