"""Flash attention for a wide head on Hopper: wgmma fed by TMA, probabilities in registers, tiles shared by two blocks.

A head of 1024 is too wide for the usual flash loop, whose output accumulators alone would fill the register file. But
512 keys are few: a query's probabilities fit into registers as halves. So each warpgroup takes 64 queries, makes their
scores in two halves of 256 keys, and then multiplies the probabilities, straight from registers, by V in chunks of 128
columns. Scores never leave the chip, and the softmax needs one correction, between the halves, by a power of two.

Moves 4·B·H·S·D halves through device memory (4.3 GB at full size, against 6.4 GB of the three separate steps) and
does 4·B·H·S²·D FLOP (1.1e12). Q is read twice, K and V once for every 256 queries, from L2: 6.4 GB.
Limit: the tensor cores. Two warpgroups take turns, so that one multiplies while the other takes exponentials or stores.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);"

# Plain CUDA, without PyTorch: raw pointers and a stream.
KERNEL_SOURCE = r"""
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

// Blocks of a cluster work on neighbouring queries of one head; each loads its share of a tile of K or V for all.
constexpr int kCluster = 2;
constexpr bool kTakeTurns = true;  // the second warpgroup lets the first finish its scores before its own last steps

constexpr int kWarpgroup = 128, kConsumers = 2, kThreads = (1 + kConsumers) * kWarpgroup;
constexpr int kRows = 64;                        // queries of a warpgroup: the m of its products
constexpr int kBlockRows = kConsumers * kRows;   // queries of a block
constexpr int kHalfKeys = 256, kMaxKeys = 512;   // scores of one half fill 128 registers of each thread
constexpr int kStep = 64;                        // columns of Q and K in a stage: 128 bytes, the width of a swizzle
constexpr int kChunk = 128;                      // columns of the output made at a time: 64 registers of each thread
constexpr int kParts = 3, kPartKeys = 192, kLastKeys = kMaxKeys - 2 * kPartKeys;  // stages of V for a chunk
constexpr int kRowBytes = kStep * 2;
constexpr int kQueryBytes = kBlockRows * kRowBytes, kKeyBytes = kHalfKeys * kRowBytes;
constexpr int kStages = 4, kStageBytes = kQueryBytes + kKeyBytes;
constexpr int kColumnBytes = kPartKeys * kRowBytes;  // V lies in blocks of 64 columns, this far apart
constexpr int kStagingBytes = kRows * kChunk * 2;    // output of a warpgroup on its way out
static_assert(2 * kColumnBytes == kStageBytes && kQueryBytes % 1024 == 0 && kColumnBytes % 1024 == 0);

constexpr float kLow = -1e30f;  // a score as good as -infinity, but it may be subtracted from itself

struct alignas(1024) Shared {  // the swizzle pattern repeats every 1024 bytes, counted from address 0
  char ring[kStages][kStageBytes];
  char staging[kConsumers][kStagingBytes];
  uint64_t full[kStages], empty[kStages];
  float low;  // kLow
};

struct Maps {  // what the copy engine needs to know of each tensor, and the box it moves at a time
  CUtensorMap q, k, v, v_last, out;
};

struct Shape {
  int items, whole_tiles, tiles_per_head, keys, steps, chunks;
  float scale;  // log2(e) / sqrt(D)
};

__device__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// ---- barriers -----------------------------------------------------------------------------------------------------

__device__ void init_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

__device__ bool try_wait(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ void wait(uint32_t barrier, uint32_t parity) {
  while (!try_wait(barrier, parity)) continue;
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

__device__ uint32_t rank_in_cluster() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

enum NamedBarrier { kTurn = 1, kStaging = 2 };  // 2 and 3: one for each warpgroup's staging buffer; 0 is __syncthreads

__device__ void named_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ void named_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// ---- the copy engine ----------------------------------------------------------------------------------------------

// What L2 should do with a tile; as createpolicy.fractional.L2::evict_*.b64 makes them for all of an access.
constexpr uint64_t kNormal = 0x1000000000000000, kStream = 0x12f0000000000000, kKeep = 0x14f0000000000000;

struct Box {  // its first column, row and head
  const CUtensorMap* map;
  int column, row, head;
};

__device__ void copy(uint32_t target, const Box& box, uint32_t barrier, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(target),
      "l"(box.map), "r"(box.column), "r"(box.row), "r"(box.head), "r"(barrier), "l"(policy)
      : "memory");
}

// To the same place in every block of the cluster, at whose own barrier the bytes are counted.
__device__ void copy_to_all(uint32_t target, const Box& box, uint32_t barrier, uint64_t policy) {
  if constexpr (kCluster == 1) {
    copy(target, box, barrier, policy);
  } else {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
        "[%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(target),
        "l"(box.map), "r"(box.column), "r"(box.row), "r"(box.head), "r"(barrier),
        "h"(static_cast<uint16_t>((1 << kCluster) - 1)), "l"(policy)
        : "memory");
  }
}

__device__ void store(const Box& box, uint32_t source, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2, %3}], [%4], %5;" ::"l"(
          box.map),
      "r"(box.column), "r"(box.row), "r"(box.head), "r"(source), "l"(policy)
      : "memory");
}

// ---- products -----------------------------------------------------------------------------------------------------

// How an operand lies in shared memory: rows of 128 swizzled bytes, eight rows (1024 bytes) after one another;
// addresses and distances in units of 16 bytes. `across` is the distance from one 64-column block to the next, for
// operands whose sums run over rows (V); those whose sums run over columns (Q, K) have it ignored.
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

// d (64 x 256) += q (64 x 16) kᵀ (16 x 256)
__device__ void multiply_scores(float (&d)[128], uint64_t q, uint64_t k) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, 1, 1, 1, 0, 0;\n"
      : SUMS_32(d, 0), SUMS_32(d, 32), SUMS_32(d, 64), SUMS_32(d, 96)
      : "l"(q), "l"(k));
}

// d (64 x 128) = p (64 x 16, four registers of each thread) v (16 x 128), added to what d holds if `add`.
__device__ void multiply_values(float (&d)[64], const uint32_t* p, uint64_t v, int add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
      "}\n"
      : SUMS_32(d, 0), SUMS_32(d, 32)
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v), "r"(add));
}

// ---- the producer: one thread that keeps the ring full --------------------------------------------------------------

struct Work {  // this block's queries, and the chunks of columns that it makes of their output
  int head, row, first_chunk, chunks;
};

// Tiles of queries that do not go round are the last items, each as many as it has chunks: the scores are made anew for
// each, but the card is not left to a few blocks.
__device__ Work work_of(const Shape& shape, int item, uint32_t rank) {
  const bool whole = item < shape.whole_tiles;
  const int tile = whole ? item : shape.whole_tiles + (item - shape.whole_tiles) / shape.chunks;
  return {tile / shape.tiles_per_head, (tile % shape.tiles_per_head * kCluster + static_cast<int>(rank)) * kBlockRows,
          whole ? 0 : (item - shape.whole_tiles) % shape.chunks, whole ? shape.chunks : 1};
}

// What this block loads in one stage of an item: first Q and K step by step, for each half of the keys, then V part by
// part, for each chunk of columns.
__device__ void load_stage(const Maps& maps, const Shape& shape, Work work, int stage, uint32_t rank, uint32_t target,
                           uint32_t full) {
  if (stage < 2 * shape.steps) {
    constexpr int kShare = kHalfKeys / kCluster;
    const int half = stage / shape.steps, column = stage % shape.steps * kStep, share = rank * kShare;
    copy(target, Box{&maps.q, column, work.row, work.head}, full, half == 0 ? kKeep : kStream);
    copy_to_all(target + kQueryBytes + share * kRowBytes, Box{&maps.k, column, half * kHalfKeys + share, work.head},
                full, kNormal);
  } else {
    const int chunk = work.first_chunk + (stage - 2 * shape.steps) / kParts, part = (stage - 2 * shape.steps) % kParts;
    const bool last = part == kParts - 1;
    const int share = rank * ((last ? kLastKeys : kPartKeys) / kCluster);
    const CUtensorMap* map = last ? &maps.v_last : &maps.v;
    for (int block = 0; block < kChunk / kStep; ++block)
      copy_to_all(target + block * kColumnBytes + share * kRowBytes,
                  Box{map, chunk * kChunk + block * kStep, part * kPartKeys + share, work.head}, full, kNormal);
  }
}

__device__ void produce(const Maps& maps, const Shape& shape, Shared& shared, uint32_t rank) {
  uint32_t count = 0;
  for (int item = blockIdx.x / kCluster; item < shape.items; item += gridDim.x / kCluster) {
    const Work work = work_of(shape, item, rank);
    const int stages = 2 * shape.steps + kParts * work.chunks;
    for (int stage = 0; stage < stages; ++stage, ++count) {
      const uint32_t slot = count % kStages, full = shared_address(&shared.full[slot]);
      // A new barrier counts as having completed the phase before its first: the first round does not wait.
      wait(shared_address(&shared.empty[slot]), count / kStages % 2 ^ 1);
      const bool last = stage >= 2 * shape.steps && (stage - 2 * shape.steps) % kParts == kParts - 1;
      arrive_expecting(full, last ? kLastKeys * kChunk * 2 : kStageBytes);
      load_stage(maps, shape, work, stage, rank, shared_address(shared.ring[slot]), full);
    }
  }
}

// ---- the consumers: a warpgroup each --------------------------------------------------------------------------------

class Ring {  // a warpgroup's view of it
 public:
  __device__ explicit Ring(Shared& shared) : shared_(shared) {}

  // The next stage, once its bytes are there.
  __device__ uint32_t next() {
    wait(shared_address(&shared_.full[count_ % kStages]), count_ / kStages % 2);
    return shared_address(shared_.ring[count_ % kStages]);
  }

  // After the products of a stage were issued: gives back the stage before it, whose products are done by then. The
  // tensor cores always have the next products waiting.
  __device__ void issued() {
    products_commit();
    products_wait<1>();
    if (held_) release();
    held_ = true;
    ++count_;
  }

  // Waits for all products and gives back the last stage. Returns kLow, read from shared memory after that: work that
  // depends on it cannot be put before the release, as the compiler likes to do.
  __device__ float drain() {
    products_wait<0>();
    if (held_) release();
    held_ = false;
    return *const_cast<const volatile float*>(&shared_.low);
  }

 private:
  // Every block of the cluster writes into this slot of all blocks, so all are told.
  __device__ void release() {
    const uint32_t block = threadIdx.x % kWarpgroup;
    if (block < kCluster) arrive_at(shared_address(&shared_.empty[(count_ - 1) % kStages]), block);
  }

  Shared& shared_;
  uint32_t count_ = 0;
  bool held_ = false;
};

// A thread's 128 scores are of two rows, eight apart: scores[i] is of row i / 2 % 2 and of key
// i / 4 * 8 + lane % 4 * 2 + i % 2. The probabilities that a product takes, 16 keys at a time, are wanted in the same
// places, two in a register.

// Scores of 64 queries and half of the keys. Keys that do not exist start out low, and their products are zero. Returns
// kLow, as Ring::drain.
__device__ float make_scores(float (&scores)[128], Ring& ring, const Shape& shape, int half, int warpgroup) {
  // Starting from zeros costs less than it seems: without, the compiler keeps the registers of all scores until the
  // last of them has become a probability, and spills.
  const int keys = shape.keys - half * kHalfKeys, lane = threadIdx.x % 4;  // `keys` may be negative
  if (keys >= kHalfKeys) {
#pragma unroll
    for (int i = 0; i < 128; ++i) scores[i] = 0;
  } else {
#pragma unroll
    for (int i = 0; i < 128; ++i) scores[i] = i / 4 * 8 + lane * 2 + i % 2 < keys ? 0 : kLow;
  }
  // Not with so few steps that one warpgroup could come by twice before the other.
  const bool turns = kTakeTurns && shape.steps > kStages;
  for (int step = 0; step < shape.steps; ++step) {
    if (turns && warpgroup == 1 && step == shape.steps - 2) {
      ring.drain();
      named_sync(kTurn, kConsumers * kWarpgroup);
    }
    const uint32_t stage = ring.next();
    const uint64_t q = describe(stage + warpgroup * kRows * kRowBytes, 0), k = describe(stage + kQueryBytes, 0);
    products_begin();
#pragma unroll
    for (int i = 0; i < kStep / 16; ++i)  // 16 columns are 32 bytes further in the swizzled rows
      multiply_scores(scores, q + i * 32 / 16, k + i * 32 / 16);
    ring.issued();
  }
  if (turns && warpgroup == 0) named_arrive(kTurn, kConsumers * kWarpgroup);
  return ring.drain();
}

__device__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Probabilities are 2^14 times too large, out of the way of fp16's subnormal numbers; the total divides that out again.
constexpr float kHeadroom = 14;

// Turns the scores of a half into probabilities relative to 2^top, the largest so far. It is rounded up to a power of
// two, so that correcting the first half for a larger one later rounds nothing. `total` becomes this thread's share of
// the sum.
__device__ void make_probabilities(const float (&scores)[128], uint32_t* probabilities, float low, float (&top)[2],
                                   float (&total)[2], float scale) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float largest = low;
#pragma unroll
    for (int i = 0; i < 128; ++i)
      if (i / 2 % 2 == row) largest = fmaxf(largest, scores[i]);
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));  // four neighbouring lanes hold a row
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
    top[row] = fmaxf(top[row], ceilf(largest * scale));
    total[row] = 0;
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    const int row = i % 2;
    const float first = exp2_fast(fmaf(scores[2 * i], scale, kHeadroom - top[row]));
    const float second = exp2_fast(fmaf(scores[2 * i + 1], scale, kHeadroom - top[row]));
    total[row] += first + second;
    const __half2 packed = __floats2half2_rn(first, second);
    probabilities[i] = *reinterpret_cast<const uint32_t*>(&packed);
  }
}

// Makes the first half's probabilities and totals relative to the maximum of both.
__device__ void correct(uint32_t* probabilities, float (&total)[2], const float (&old_top)[2], const float (&top)[2]) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const __half factor = __float2half(exp2_fast(old_top[row] - top[row]));
    total[row] *= __half2float(factor);
#pragma unroll
    for (int i = row; i < 64; i += 2) {
      const __half2 product = __hmul2(*reinterpret_cast<const __half2*>(&probabilities[i]), __half2half2(factor));
      probabilities[i] = *reinterpret_cast<const uint32_t*>(&product);
    }
  }
}

// The copy engine has read the last chunk out of a warpgroup's staging buffer; for all threads of the warpgroup.
__device__ void await_staging(int warpgroup) {
  if (threadIdx.x % kWarpgroup == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  named_sync(kStaging + warpgroup, kWarpgroup);
}

constexpr int kParked = 8;  // vectors of four registers: half of the first half's probabilities
static_assert(kParked * kWarpgroup * sizeof(uint4) <= kStagingBytes);

// Divides 64 rows and 128 columns by the rows' totals and sends them out.
__device__ void store_chunk(const float (&sums)[64], const float (&inverse)[2], Shared& shared, const Maps& maps,
                            const Shape& shape, int item, uint32_t rank, int chunk, int warpgroup) {
  const int thread = threadIdx.x % kWarpgroup, lane = thread % 32;
  const uint32_t staging = shared_address(shared.staging[warpgroup]);
  await_staging(warpgroup);
  // stmatrix stores four matrices of 8 x 8; each lane gives the address of a row of one of them: upper and lower rows,
  // then the same, eight columns on. The 16-byte units of a row are swizzled as the tensor map says.
  const uint32_t own_row = thread / 32 * 16 + lane % 16;
#pragma unroll
  for (int i = 0; i < kChunk / 16; ++i) {
    uint32_t packed[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const __half2 pair =
          __floats2half2_rn(sums[i * 8 + j * 2] * inverse[j % 2], sums[i * 8 + j * 2 + 1] * inverse[j % 2]);
      packed[j] = *reinterpret_cast<const uint32_t*>(&pair);
    }
    const uint32_t unit = i % 4 * 2 + lane / 16;
    const uint32_t target = staging + i / 4 * (kRows * kRowBytes) + own_row * kRowBytes + (unit ^ own_row % 8) * 16;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(target), "r"(packed[0]),
                 "r"(packed[1]), "r"(packed[2]), "r"(packed[3])
                 : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // or the copy engine may read what was there before
  named_sync(kStaging + warpgroup, kWarpgroup);
  if (thread == 0) {
    const Work work = work_of(shape, item, rank);
    for (int block = 0; block < kChunk / kStep; ++block)
      store(Box{&maps.out, chunk * kChunk + block * kStep, work.row + warpgroup * kRows, work.head},
            staging + block * kRows * kRowBytes, kStream);
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
}

__device__ void consume(const Maps& maps, const Shape& shape, Shared& shared, uint32_t rank, int warpgroup) {
  Ring ring(shared);
  for (int item = blockIdx.x / kCluster; item < shape.items; item += gridDim.x / kCluster) {
    uint32_t probabilities[128];
    float top[2] = {kLow, kLow}, total[2];
    {
      float scores[128];
      float low = make_scores(scores, ring, shape, 0, warpgroup);
      make_probabilities(scores, probabilities, low, top, total, shape.scale);
      // Scores and the first half's probabilities take 192 registers. Some of the latter wait in the staging buffer,
      // each thread's for itself, or there would be too few left to turn scores into probabilities.
      uint4* parked = reinterpret_cast<uint4*>(shared.staging[warpgroup]) + threadIdx.x % kWarpgroup;
      await_staging(warpgroup);
#pragma unroll
      for (int i = 0; i < kParked; ++i) {
        const uint32_t* p = probabilities + 4 * i;
        parked[i * kWarpgroup] = make_uint4(p[0], p[1], p[2], p[3]);
      }
      const float first_top[2] = {top[0], top[1]};
      float first_total[2] = {total[0], total[1]};
      low = make_scores(scores, ring, shape, 1, warpgroup);
      make_probabilities(scores, probabilities + 64, low, top, total, shape.scale);
#pragma unroll
      for (int i = 0; i < kParked; ++i) {
        const uint4 p = parked[i * kWarpgroup];
        probabilities[4 * i] = p.x, probabilities[4 * i + 1] = p.y;
        probabilities[4 * i + 2] = p.z, probabilities[4 * i + 3] = p.w;
      }
      correct(probabilities, first_total, first_top, top);
      total[0] += first_total[0];
      total[1] += first_total[1];
    }
    float inverse[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      total[row] += __shfl_xor_sync(0xffffffffu, total[row], 1);
      total[row] += __shfl_xor_sync(0xffffffffu, total[row], 2);
      inverse[row] = 1.0f / total[row];
    }
    // Few registers are left: what is known of the item is worked out again where it is needed.
    int chunk = work_of(shape, item, rank).first_chunk;
    do {
      float sums[64];
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const uint64_t v = describe(ring.next(), kColumnBytes);
        products_begin();
#pragma unroll
        for (int i = 0; i < (part == kParts - 1 ? kLastKeys : kPartKeys) / 16; ++i)  // 16 keys are 2048 bytes further
          multiply_values(sums, probabilities + (part * kPartKeys / 16 + i) * 4, v + i * 16 * kRowBytes / 16,
                          part > 0 || i > 0);
        ring.issued();
      }
      ring.drain();
      store_chunk(sums, inverse, shared, maps, shape, item, rank, chunk, warpgroup);
    } while (item < shape.whole_tiles && ++chunk < shape.chunks);
  }
  if (threadIdx.x % kWarpgroup == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void __launch_bounds__(kThreads, 1) attend(const __grid_constant__ Maps maps, const Shape shape) {
  extern __shared__ __align__(1024) char raw[];
  Shared& shared = *reinterpret_cast<Shared*>(raw);
  const uint32_t rank = rank_in_cluster();
  if (threadIdx.x == 0) {
    shared.low = kLow;
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
    if (threadIdx.x == 0) produce(maps, shape, shared, rank);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume(maps, shape, shared, rank, threadIdx.x / kWarpgroup - 1);
  }
  __syncwarp();
  cluster_sync();  // nobody may leave while others still write here
}

// ---- host -----------------------------------------------------------------------------------------------------------

// The driver's function by way of the runtime: nothing to link with.
inline decltype(&cuTensorMapEncodeTiled) tensor_map_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found) !=
          cudaSuccess ||
      found != cudaDriverEntryPointSuccess)
    return nullptr;
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

// A contiguous (heads, rows, columns) tensor of halves, moved in boxes of `box_rows` x 64; what lies outside reads as
// zero and is not written.
inline bool make_map(CUtensorMap* map, const void* data, int64_t heads, int64_t rows, int64_t columns, int box_rows) {
  static const auto encode = tensor_map_encoder();
  const cuuint64_t sizes[3] = {cuuint64_t(columns), cuuint64_t(rows), cuuint64_t(heads)};
  const cuuint64_t pitches[2] = {cuuint64_t(columns) * 2, cuuint64_t(rows * columns) * 2};
  const cuuint32_t box[3] = {kStep, cuuint32_t(box_rows), 1}, every[3] = {1, 1, 1};
  return encode != nullptr &&
         encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, const_cast<void*>(data), sizes, pitches, box, every,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// q and out: (heads, queries, dim); k and v: (heads, keys, dim), at most 512 keys, dim a multiple of 8.
inline cudaError_t launch(const void* q, const void* k, const void* v, void* out, int64_t heads, int64_t queries,
                          int64_t keys, int64_t dim, cudaStream_t stream) {
  Maps maps;
  if (!make_map(&maps.q, q, heads, queries, dim, kBlockRows) ||
      !make_map(&maps.k, k, heads, keys, dim, kHalfKeys / kCluster) ||
      !make_map(&maps.v, v, heads, keys, dim, kPartKeys / kCluster) ||
      !make_map(&maps.v_last, v, heads, keys, dim, kLastKeys / kCluster) ||
      !make_map(&maps.out, out, heads, queries, dim, kRows))
    return cudaErrorInvalidValue;
  const int tiles_per_head = (queries + kBlockRows * kCluster - 1) / (kBlockRows * kCluster);
  const int tiles = static_cast<int>(heads * tiles_per_head), chunks = static_cast<int>((dim + kChunk - 1) / kChunk);

  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = kCluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = kCluster;
  config.blockDim = kThreads;
  config.dynamicSmemBytes = sizeof(Shared);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaError_t error = cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  if (error != cudaSuccess) return error;
  // As many clusters as run at a time: each goes through its tiles without new launches in between.
  static int resident = 0;
  if (resident == 0) error = cudaOccupancyMaxActiveClusters(&resident, attend, &config);
  if (error != cudaSuccess) return error;
  const int rest = tiles % resident, split = rest * chunks <= resident ? rest : 0, items = tiles + split * (chunks - 1);
  config.gridDim = kCluster * (items < resident ? items : resident);
  const Shape shape = {items,
                       tiles - split,
                       tiles_per_head,
                       static_cast<int>(keys),
                       static_cast<int>((dim + kStep - 1) / kStep),
                       chunks,
                       static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(dim)))};
  return cudaLaunchKernelEx(&config, attend, maps, shape);
}
"""

BINDING_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

at::Tensor attention(const at::Tensor& q_in, const at::Tensor& k_in, const at::Tensor& v_in) {
  TORCH_CHECK_NOT_IMPLEMENTED(q_in.is_cuda() && k_in.is_cuda() && v_in.is_cuda() && q_in.scalar_type() == at::kHalf &&
                                  k_in.scalar_type() == at::kHalf && v_in.scalar_type() == at::kHalf,
                              "flash_wide_head takes float16 on CUDA");
  TORCH_CHECK(q_in.dim() == 4 && k_in.dim() == 4 && k_in.sizes() == v_in.sizes() && q_in.size(0) == k_in.size(0) &&
                  q_in.size(1) == k_in.size(1) && q_in.size(3) == k_in.size(3),
              "expected Q (B, H, S, D) and K, V (B, H, T, D), got ", q_in.sizes(), ", ", k_in.sizes(), " and ",
              v_in.sizes());
  const c10::cuda::CUDAGuard guard(q_in.device());
  const auto* card = at::cuda::getCurrentDeviceProperties();
  TORCH_CHECK_NOT_IMPLEMENTED(card->major == 9 && card->minor == 0,
                              "flash_wide_head is written in instructions of compute capability 9.0 alone, this is ",
                              card->major, ".", card->minor);
  const at::Tensor q = q_in.contiguous(), k = k_in.contiguous(), v = v_in.contiguous();
  const int64_t heads = q.size(0) * q.size(1), queries = q.size(2), keys = k.size(2), dim = q.size(3);
  TORCH_CHECK_NOT_IMPLEMENTED(keys >= 1 && keys <= kMaxKeys && dim >= 8 && dim % 8 == 0,
                              "flash_wide_head takes 1 to 512 keys and head dimensions that are multiples of 8, got ",
                              keys, " and ", dim);
  at::Tensor out = at::empty_like(q);
  if (out.numel() == 0) return out;
  TORCH_CHECK_NOT_IMPLEMENTED(
      (reinterpret_cast<uintptr_t>(q.const_data_ptr()) | reinterpret_cast<uintptr_t>(k.const_data_ptr()) |
       reinterpret_cast<uintptr_t>(v.const_data_ptr())) % 16 == 0,
      "flash_wide_head takes tensors that start at a multiple of 16 bytes");
  C10_CUDA_CHECK(launch(q.const_data_ptr(), k.const_data_ptr(), v.const_data_ptr(), out.mutable_data_ptr(), heads,
                        queries, keys, dim, c10::cuda::getCurrentCUDAStream()));
  return out;
}
"""

# wgmma and setmaxnreg exist only in the target with the a.
extension = load_inline(
    name="assay_sdpa_flash_wide_head",
    cpp_sources=CPP_SOURCE,
    cuda_sources=[KERNEL_SOURCE, BINDING_SOURCE],
    functions=["attention"],
    extra_cuda_cflags=["-gencode=arch=compute_90a,code=sm_90a"],
)


class ModelNew(nn.Module):
    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return extension.attention(Q, K, V)
