"""Causal flash attention on Hopper: wgmma fed by TMA, probabilities in registers, exponentials under the next products.

After FlashAttention-3 (Shah et al., 2024): a block takes 128 queries, 64 for each of two warpgroups, and goes from the
diagonal down through tiles of 128 keys. A warpgroup starts the next tile's scores and this tile's output together, and
takes exponentials while the tensor cores work; the two take turns at starting. Blocks stay: each works through pairs of
a long and a short tile of queries, all pairs equally long. Neighbours work on one head, whose keys and values L2 holds.

2·B·H·S²·D FLOP (1.4e11 at full size), and 6 % more for the masked halves of diagonal tiles. Device memory: Q, K, V and
the output once, 0.27 GB; K and V again from L2 for every 128 queries, 1.1 GB.
Limit: the tensor cores. The exponentials take half as long, and hide as far as the two warpgroups overlap.
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

constexpr int kDim = 128;                        // of a head; smaller ones are filled up with zeros
constexpr int kWarpgroup = 128, kConsumers = 2, kThreads = (1 + kConsumers) * kWarpgroup;
constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
constexpr int kRows = 64;                        // queries of a warpgroup: the m of its products
constexpr int kBlockRows = kConsumers * kRows;   // queries of a block
constexpr int kKeys = 128;                       // keys of a tile: 64 scores of each thread
constexpr int kColumns = 64, kRowBytes = kColumns * 2;  // a box of the copy engine: 128 bytes, the width of a swizzle
constexpr int kBoxes = kDim / kColumns;
constexpr int kTileBytes = kKeys * kDim * 2, kQueryBytes = kBlockRows * kDim * 2, kStagingBytes = kRows * kDim * 2;
constexpr int kStages = 5;
constexpr bool kTakeTurns = true;
static_assert(kBlockRows == kKeys);  // so that only the first tile of an item is masked

struct alignas(1024) Shared {  // the swizzle pattern repeats every 1024 bytes, counted from address 0
  char ring[kStages][kTileBytes];  // K of the first tile, then K of the next and V of this, ..., V of the last
  char query[kQueryBytes];
  char staging[kConsumers][kStagingBytes];  // output of a warpgroup on its way out
  uint64_t full[kStages], empty[kStages], query_full, query_empty;
  float never;
};

struct Maps {  // what the copy engine needs to know of each tensor, and the box it moves at a time
  CUtensorMap q, k, v, out;
};

struct Shape {
  int items, query_tiles, keys;
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

// One thread speaks for its warpgroup, whose products are done by then.
__device__ void release(uint32_t barrier) {
  if (threadIdx.x % kWarpgroup == 0)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

enum NamedBarrier { kTurn = 1, kStaging = kTurn + kConsumers };  // one of each for each warpgroup; 0 is __syncthreads

__device__ void named_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ void named_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// A place in the ring, for those who fill it and those who read.
struct Place {
  uint32_t slot = 0, parity = 0;

  __device__ void advance() {
    if (++slot == kStages) slot = 0, parity ^= 1;
  }
};

// ---- the copy engine ----------------------------------------------------------------------------------------------

struct Box {  // its first column, row and head
  const CUtensorMap* map;
  int column, row, head;
};

__device__ void copy(uint32_t target, const Box& box, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(target),
      "l"(box.map), "r"(box.column), "r"(box.row), "r"(box.head), "r"(barrier)
      : "memory");
}

__device__ void store(const Box& box, uint32_t source) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(box.map),
               "r"(box.column), "r"(box.row), "r"(box.head), "r"(source)
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

// Until all but the last kPending groups are done. What is read of `sums` is read after that, which the compiler would
// not know by itself.
template <int kPending, int kCount>
__device__ void products_wait(float (&sums)[kCount]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

#define SUMS_8(d, i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define SUMS_32(d, i) SUMS_8(d, i), SUMS_8(d, i + 8), SUMS_8(d, i + 16), SUMS_8(d, i + 24)

// d (64 x 128) = q (64 x 16) kᵀ (16 x 128), added to what d holds if kAdd.
template <int kAdd>
__device__ void multiply_scores(float (&d)[64], uint64_t q, uint64_t k) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, %66, 1, 1, 0, 0;\n"
      : SUMS_32(d, 0), SUMS_32(d, 32)
      : "l"(q), "l"(k), "n"(kAdd));
}

// d (64 x 128) += p (64 x 16, four registers of each thread) v (16 x 128)
__device__ void multiply_values(float (&d)[64], const uint32_t* p, uint64_t v) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;\n"
      : SUMS_32(d, 0), SUMS_32(d, 32)
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v));
}

__device__ uint32_t pack(float first, float second) {
  const __half2 pair = __floats2half2_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// ---- who does what ------------------------------------------------------------------------------------------------

struct Work {  // the first of a block's queries, and how many tiles of keys the last of them sees
  int head, row, key_tiles;
};

// An item is a pair of tiles of queries, the last and the first of a head, the last but one and the second, and so on.
// A tile in the middle has no partner: no tiles of keys.
__device__ Work work_of(const Shape& shape, int item, int half) {
  const int pairs = (shape.query_tiles + 1) / 2, first = item % pairs, last = shape.query_tiles - 1 - first;
  const int tile = half == 0 ? last : first;
  const int key_tiles = min(tile + 1, (shape.keys + kKeys - 1) / kKeys);
  return {item / pairs, tile * kBlockRows, half == 1 && first == last ? 0 : key_tiles};
}

// ---- the producer: one thread that keeps the ring full --------------------------------------------------------------

__device__ void load_tile(const CUtensorMap& map, Shared& shared, Place& place, int tile, int head) {
  const uint32_t full = shared_address(&shared.full[place.slot]), target = shared_address(shared.ring[place.slot]);
  // A new barrier counts as having completed the phase before its first: the first round does not wait.
  wait(shared_address(&shared.empty[place.slot]), place.parity ^ 1);
  arrive_expecting(full, kTileBytes);
  for (int box = 0; box < kBoxes; ++box)
    copy(target + box * kKeys * kRowBytes, Box{&map, box * kColumns, tile * kKeys, head}, full);
  place.advance();
}

__device__ void load_queries(const Maps& maps, Shared& shared, const Work& work, uint32_t parity) {
  const uint32_t full = shared_address(&shared.query_full), target = shared_address(shared.query);
  wait(shared_address(&shared.query_empty), parity ^ 1);
  arrive_expecting(full, kQueryBytes);
  for (int box = 0; box < kBoxes; ++box)
    copy(target + box * kBlockRows * kRowBytes, Box{&maps.q, box * kColumns, work.row, work.head}, full);
}

__device__ void produce(const Maps& maps, const Shape& shape, Shared& shared) {
  Place place;
  uint32_t query_parity = 0;
  for (int item = blockIdx.x; item < shape.items; item += gridDim.x)
    for (int half = 0; half < 2; ++half) {
      const Work work = work_of(shape, item, half);
      if (work.key_tiles == 0) continue;
      load_tile(maps.k, shared, place, work.key_tiles - 1, work.head);
      load_queries(maps, shared, work, query_parity);
      query_parity ^= 1;
      for (int tile = work.key_tiles - 1; tile >= 0; --tile) {
        if (tile > 0) load_tile(maps.k, shared, place, tile - 1, work.head);
        load_tile(maps.v, shared, place, tile, work.head);
      }
    }
}

// ---- the consumers: a warpgroup each --------------------------------------------------------------------------------

// The next tile's slot, once its bytes are there.
__device__ uint32_t await_tile(Shared& shared, Place& place) {
  const uint32_t slot = place.slot;
  wait(shared_address(&shared.full[slot]), place.parity);
  place.advance();
  return slot;
}

// Warpgroups start their products one after the other, so that one multiplies while another takes exponentials.
__device__ void take_turn(int warpgroup) {
  if (kTakeTurns) named_sync(kTurn + warpgroup, 2 * kWarpgroup);
}

__device__ void pass_turn(int warpgroup) {
  if (kTakeTurns) named_arrive(kTurn + (warpgroup + 1) % kConsumers, 2 * kWarpgroup);
}

// A thread's 64 scores are of two rows, eight apart: scores[i] is of row i / 2 % 2 and of key
// i / 4 * 8 + lane % 4 * 2 + i % 2. The probabilities that a product takes, 16 keys at a time, are wanted in the same
// places, two in a register.

__device__ void start_scores(float (&scores)[64], const Shared& shared, uint32_t slot, int warpgroup) {
  const uint64_t q = describe(shared_address(shared.query) + warpgroup * kRows * kRowBytes, 0);
  const uint64_t k = describe(shared_address(shared.ring[slot]), 0);
  products_begin();
#pragma unroll
  for (int i = 0; i < kDim / 16; ++i) {  // 16 columns are 32 bytes further in the swizzled rows
    const uint64_t from_q = q + (i / 4 * kBlockRows * kRowBytes + i % 4 * 32) / 16;
    const uint64_t from_k = k + (i / 4 * kKeys * kRowBytes + i % 4 * 32) / 16;
    if (i == 0)
      multiply_scores<0>(scores, from_q, from_k);
    else
      multiply_scores<1>(scores, from_q, from_k);
  }
  products_commit();
}

__device__ void start_output(float (&sums)[kDim / 2], const uint32_t (&probabilities)[32], const Shared& shared,
                             uint32_t slot) {
  const uint64_t v = describe(shared_address(shared.ring[slot]), kKeys * kRowBytes);
  products_begin();
#pragma unroll
  for (int i = 0; i < kKeys / 16; ++i)  // 16 keys are 2048 bytes further
    multiply_values(sums, probabilities + i * 4, v + i * 16 * kRowBytes / 16);
  products_commit();
}

// What a query may not see becomes -infinity: keys after its own position, and those that do not exist. Each query sees
// the first key of the tile, so its largest score is finite.
__device__ void mask(float (&scores)[64], const Shape& shape, const Work& work, int warpgroup) {
  const int thread = threadIdx.x % kWarpgroup, first_key = (work.key_tiles - 1) * kKeys + thread % 4 * 2;
  const int query = work.row + warpgroup * kRows + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    const int last_seen = min(query + i / 2 % 2 * 8, shape.keys - 1);
    if (first_key + i / 4 * 8 + i % 2 > last_seen) scores[i] = -INFINITY;
  }
}

__device__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

struct Rows {  // of each of a thread's two rows
  float shift[2] = {INFINITY, INFINITY};  // minus the largest score so far, scaled
  float total[2] = {0, 0};                // this thread's share of the sum of probabilities
  float factor[2];                        // of what was summed before, as the largest score has grown
};

// Turns scores into probabilities relative to the largest score so far.
__device__ void soften(float (&scores)[64], Rows& rows, float scale) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float largest = fmaxf(scores[2 * row], scores[2 * row + 1]);
#pragma unroll
    for (int i = 4 + 2 * row; i < 64; i += 4) largest = fmaxf(largest, fmaxf(scores[i], scores[i + 1]));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));  // four neighbouring lanes hold a row
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
    const float shift = fminf(rows.shift[row], -largest * scale);
    rows.factor[row] = exp2_fast(shift - rows.shift[row]);
    rows.shift[row] = shift;
    rows.total[row] *= rows.factor[row];
  }
#pragma unroll
  for (int i = 0; i < 64; i += 2) {
    const int row = i / 2 % 2;
    scores[i] = exp2_fast(fmaf(scores[i], scale, rows.shift[row]));
    scores[i + 1] = exp2_fast(fmaf(scores[i + 1], scale, rows.shift[row]));
    rows.total[row] += scores[i] + scores[i + 1];
  }
}

// Keeps the compiler from putting the next wait for products before the exponentials, which are to be taken while those
// run: a store that waits for their sum, which is never negative. A branch would have the products run one by one.
__device__ void finish_first(const Rows& rows, Shared& shared) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.lt.f32 p, %0, 0f00000000;\n"
      "@p st.shared.f32 [%1], %0;\n"
      "}\n" ::"f"(rows.total[0] + rows.total[1]),
      "r"(shared_address(&shared.never))
      : "memory");
}

__device__ void pack_all(uint32_t (&probabilities)[32], const float (&scores)[64]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) probabilities[i] = pack(scores[2 * i], scores[2 * i + 1]);
}

// Divides 64 rows by their totals and sends them out.
__device__ void store_output(const float (&sums)[kDim / 2], Rows& rows, Shared& shared, const Maps& maps,
                             const Work& work, int warpgroup) {
  const int thread = threadIdx.x % kWarpgroup, lane = thread % 32;
  const uint32_t staging = shared_address(shared.staging[warpgroup]);
  float inverse[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float total = rows.total[row];
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    inverse[row] = 1.0f / total;
  }
  // The copy engine has read the last output out of the staging buffer.
  if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  named_sync(kStaging + warpgroup, kWarpgroup);
  // stmatrix stores four matrices of 8 x 8; each lane gives the address of a row of one of them: upper and lower rows,
  // then the same, eight columns on. The 16-byte units of a row are swizzled as the tensor map says.
  const uint32_t own_row = thread / 32 * 16 + lane % 16;
#pragma unroll
  for (int i = 0; i < kDim / 16; ++i) {
    uint32_t packed[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      packed[j] = pack(sums[i * 8 + j * 2] * inverse[j % 2], sums[i * 8 + j * 2 + 1] * inverse[j % 2]);
    const uint32_t unit = i % 4 * 2 + lane / 16;
    const uint32_t target = staging + i / 4 * (kRows * kRowBytes) + own_row * kRowBytes + (unit ^ own_row % 8) * 16;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(target), "r"(packed[0]),
                 "r"(packed[1]), "r"(packed[2]), "r"(packed[3])
                 : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // or the copy engine may read what was there before
  named_sync(kStaging + warpgroup, kWarpgroup);
  if (thread == 0) {
    for (int box = 0; box < kBoxes; ++box)
      store(Box{&maps.out, box * kColumns, work.row + warpgroup * kRows, work.head}, staging + box * kRows * kRowBytes);
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
}

__device__ void attend_tile(const Maps& maps, const Shape& shape, Shared& shared, const Work& work, int warpgroup,
                            Place& place, uint32_t query_parity) {
  float scores[64], sums[kDim / 2];
  uint32_t probabilities[32];
  Rows rows;
#pragma unroll
  for (int i = 0; i < kDim / 2; ++i) sums[i] = 0;

  wait(shared_address(&shared.query_full), query_parity);
  const uint32_t first = await_tile(shared, place);
  start_scores(scores, shared, first, warpgroup);
  products_wait<0>(scores);
  release(shared_address(&shared.empty[first]));
  if (work.key_tiles == 1) release(shared_address(&shared.query_empty));
  mask(scores, shape, work, warpgroup);
  soften(scores, rows, shape.scale);
  pack_all(probabilities, scores);

#pragma unroll 1
  for (int tile = work.key_tiles - 1; tile > 0; --tile) {  // its output, and the scores of the one before
    const uint32_t keys = await_tile(shared, place);
    take_turn(warpgroup);
    start_scores(scores, shared, keys, warpgroup);
    const uint32_t values = await_tile(shared, place);
    start_output(sums, probabilities, shared, values);
    pass_turn(warpgroup);
    products_wait<1>(scores);
    release(shared_address(&shared.empty[keys]));
    if (tile == 1) release(shared_address(&shared.query_empty));
    soften(scores, rows, shape.scale);
    finish_first(rows, shared);
    products_wait<0>(sums);
    release(shared_address(&shared.empty[values]));
#pragma unroll
    for (int i = 0; i < kDim / 2; ++i) sums[i] *= rows.factor[i / 2 % 2];
    pack_all(probabilities, scores);
  }

  const uint32_t values = await_tile(shared, place);
  start_output(sums, probabilities, shared, values);
  products_wait<0>(sums);
  release(shared_address(&shared.empty[values]));
  store_output(sums, rows, shared, maps, work, warpgroup);
}

__device__ void consume(const Maps& maps, const Shape& shape, Shared& shared, int warpgroup) {
  Place place;
  uint32_t query_parity = 0;
  if (warpgroup == kConsumers - 1) pass_turn(warpgroup);  // the first warpgroup begins
  for (int item = blockIdx.x; item < shape.items; item += gridDim.x)
    for (int half = 0; half < 2; ++half) {
      const Work work = work_of(shape, item, half);
      if (work.key_tiles == 0) continue;
      attend_tile(maps, shape, shared, work, warpgroup, place, query_parity);
      query_parity ^= 1;
    }
  if (warpgroup == 0) take_turn(warpgroup);  // the one left over
  if (threadIdx.x % kWarpgroup == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void __launch_bounds__(kThreads, 1) attend(const __grid_constant__ Maps maps, const Shape shape) {
  extern __shared__ __align__(1024) char raw[];
  Shared& shared = *reinterpret_cast<Shared*>(raw);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kStages; ++slot) {
      init_barrier(shared_address(&shared.full[slot]), 1);
      init_barrier(shared_address(&shared.empty[slot]), kConsumers);
    }
    init_barrier(shared_address(&shared.query_full), 1);
    init_barrier(shared_address(&shared.query_empty), kConsumers);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  // Registers go to those who multiply.
  if (threadIdx.x < kWarpgroup) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kProducerRegisters));
    if (threadIdx.x == 0) produce(maps, shape, shared);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kConsumerRegisters));
    consume(maps, shape, shared, threadIdx.x / kWarpgroup - 1);
  }
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
  const cuuint32_t box[3] = {kColumns, cuuint32_t(box_rows), 1}, every[3] = {1, 1, 1};
  return encode != nullptr &&
         encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, const_cast<void*>(data), sizes, pitches, box, every,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// q and out: (heads, queries, dim); k and v: (heads, keys, dim); dim a multiple of 8, at most 128.
inline cudaError_t launch(const void* q, const void* k, const void* v, void* out, int64_t heads, int64_t queries,
                          int64_t keys, int64_t dim, cudaStream_t stream) {
  Maps maps;
  if (!make_map(&maps.q, q, heads, queries, dim, kBlockRows) || !make_map(&maps.k, k, heads, keys, dim, kKeys) ||
      !make_map(&maps.v, v, heads, keys, dim, kKeys) || !make_map(&maps.out, out, heads, queries, dim, kRows))
    return cudaErrorInvalidValue;
  int device = 0, multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  if (error != cudaSuccess) return error;
  const int query_tiles = static_cast<int>((queries + kBlockRows - 1) / kBlockRows);
  const int items = static_cast<int>(heads * ((query_tiles + 1) / 2));
  const Shape shape = {items, query_tiles, static_cast<int>(keys),
                       static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(dim)))};
  attend<<<items < multiprocessors ? items : multiprocessors, kThreads, sizeof(Shared), stream>>>(maps, shape);
  return cudaGetLastError();
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
                              "wgmma_flash takes float16 on CUDA");
  TORCH_CHECK(q_in.dim() == 4 && k_in.dim() == 4 && k_in.sizes() == v_in.sizes() && q_in.size(0) == k_in.size(0) &&
                  q_in.size(1) == k_in.size(1) && q_in.size(3) == k_in.size(3),
              "expected Q (B, H, S, D) and K, V (B, H, T, D), got ", q_in.sizes(), ", ", k_in.sizes(), " and ",
              v_in.sizes());
  const c10::cuda::CUDAGuard guard(q_in.device());
  const auto* card = at::cuda::getCurrentDeviceProperties();
  TORCH_CHECK_NOT_IMPLEMENTED(card->major == 9 && card->minor == 0,
                              "wgmma_flash is written in instructions of compute capability 9.0 alone, this is ",
                              card->major, ".", card->minor);
  const at::Tensor q = q_in.contiguous(), k = k_in.contiguous(), v = v_in.contiguous();
  const int64_t heads = q.size(0) * q.size(1), queries = q.size(2), keys = k.size(2), dim = q.size(3);
  TORCH_CHECK_NOT_IMPLEMENTED(keys >= 1 && dim >= 8 && dim <= kDim && dim % 8 == 0,
                              "wgmma_flash takes at least one key and head dimensions that are multiples of 8 up to ",
                              kDim, ", got ", keys, " and ", dim);
  at::Tensor out = at::empty_like(q);
  if (out.numel() == 0) return out;
  TORCH_CHECK_NOT_IMPLEMENTED(
      (reinterpret_cast<uintptr_t>(q.const_data_ptr()) | reinterpret_cast<uintptr_t>(k.const_data_ptr()) |
       reinterpret_cast<uintptr_t>(v.const_data_ptr())) % 16 == 0,
      "wgmma_flash takes tensors that start at a multiple of 16 bytes");
  C10_CUDA_CHECK(launch(q.const_data_ptr(), k.const_data_ptr(), v.const_data_ptr(), out.mutable_data_ptr(), heads,
                        queries, keys, dim, c10::cuda::getCurrentCUDAStream()));
  return out;
}
"""

# wgmma and setmaxnreg exist only in the target with the a.
extension = load_inline(
    name="assay_causal_wgmma_flash",
    cpp_sources=CPP_SOURCE,
    cuda_sources=[KERNEL_SOURCE, BINDING_SOURCE],
    functions=["attention"],
    extra_cuda_cflags=["-gencode=arch=compute_90a,code=sm_90a"],
)


class ModelNew(nn.Module):
    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return extension.attention(Q, K, V)
