// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/cuda/kernels.hpp"

namespace weft::cuda {
namespace {

constexpr long long kPatience = 8LL * 1000 * 1000 * 1000;  // clocks: some 4 to 6 s
constexpr int kThreads = 512;

__global__ void gate(const volatile std::uint32_t* flag, std::uint32_t value) {
  const long long start = clock64();
  while (*flag < value && clock64() - start < kPatience) {
  }
}

__global__ void copy_words(uint4* to, const uint4* from, std::size_t count) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    to[i] = from[i];
  }
}

__global__ void triad_words(float4* a, const float4* b, const float4* c, std::size_t count) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const float4 x = b[i], y = c[i];
    a[i] = make_float4(x.x + 3 * y.x, x.y + 3 * y.y, x.z + 3 * y.z, x.w + 3 * y.w);
  }
}

__global__ void empty() {}

__global__ void ping(volatile std::uint32_t* theirs, const volatile std::uint32_t* mine,
                     std::uint32_t rounds, bool begins, std::uint32_t* lost) {
  for (std::uint32_t i = 1; i <= rounds; ++i) {
    if (begins) *theirs = i;
    const long long start = clock64();
    while (*mine < i) {
      if (clock64() - start > kPatience) {
        *lost = 1;
        return;
      }
    }
    if (!begins) *theirs = i;
  }
}

__device__ std::uint32_t mixed(std::size_t index) {
  std::uint64_t x = index * 0x9E3779B97F4A7C15ULL + 1;
  x ^= x >> 31;
  x *= 0xBF58476D1CE4E5B9ULL;
  return static_cast<std::uint32_t>(x >> 32);
}

// `keep`: the random bits of a word; `ones`: the exponent that is set.
__global__ void fill_words(std::uint32_t* data, std::size_t count, std::uint32_t keep,
                           std::uint32_t ones) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    data[i] = (mixed(i) & keep) | ones;
  }
}

__global__ void fill_doubles(std::uint64_t* data, std::size_t count) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    data[i] = (static_cast<std::uint64_t>(mixed(i)) << 20) | 0x3FE0000000000000ULL;
  }
}

}  // namespace

cudaError_t queue_gate(const volatile std::uint32_t* flag, std::uint32_t value,
                       cudaStream_t stream) {
  gate<<<1, 1, 0, stream>>>(flag, value);
  return cudaGetLastError();
}

cudaError_t queue_copy(void* to, const void* from, std::size_t bytes, int blocks,
                       cudaStream_t stream) {
  copy_words<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      static_cast<uint4*>(to), static_cast<const uint4*>(from), bytes / sizeof(uint4));
  return cudaGetLastError();
}

cudaError_t queue_triad(float* a, const float* b, const float* c, std::size_t bytes, int blocks,
                        cudaStream_t stream) {
  triad_words<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      reinterpret_cast<float4*>(a), reinterpret_cast<const float4*>(b),
      reinterpret_cast<const float4*>(c), bytes / sizeof(float4));
  return cudaGetLastError();
}

cudaError_t queue_empty(cudaStream_t stream) {
  empty<<<1, 1, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t queue_ping(volatile std::uint32_t* theirs, const volatile std::uint32_t* mine,
                       std::uint32_t rounds, bool begins, std::uint32_t* lost,
                       cudaStream_t stream) {
  ping<<<1, 1, 0, stream>>>(theirs, mine, rounds, begins, lost);
  return cudaGetLastError();
}

cudaError_t queue_fill(void* data, std::size_t bytes, Element element, cudaStream_t stream) {
  constexpr unsigned kBlocks = 512;
  if (element == Element::fp64) {
    fill_doubles<<<kBlocks, kThreads, 0, stream>>>(static_cast<std::uint64_t*>(data), bytes / 8);
    return cudaGetLastError();
  }
  std::uint32_t keep = 0xFFFFFFFFU, ones = 0;
  switch (element) {
    case Element::fp8:  // e4m3: exponent of 0.5
      keep = 0x87878787U;
      ones = 0x30303030U;
      break;
    case Element::bf16:
      keep = 0x807F807FU;
      ones = 0x3F003F00U;
      break;
    case Element::fp16:
      keep = 0x83FF83FFU;
      ones = 0x38003800U;
      break;
    case Element::fp32:
      keep = 0x807FFFFFU;
      ones = 0x3F000000U;
      break;
    case Element::fp64:
    case Element::int8:
      break;
  }
  fill_words<<<kBlocks, kThreads, 0, stream>>>(static_cast<std::uint32_t*>(data), bytes / 4, keep,
                                               ones);
  return cudaGetLastError();
}

}  // namespace weft::cuda
