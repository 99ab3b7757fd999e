// SPDX-License-Identifier: Apache-2.0
// The kernels of the probe, as plain functions: what is timed must be known to the instruction, so none of them is anybody
// else's. They are queued on `stream` of the current device and return at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace weft::cuda {

// Waits until *flag, in pinned host memory, is not below `value`: what is queued behind it starts when the host says so, on all
// streams within about a microsecond. Gives up after some seconds.
cudaError_t queue_gate(const volatile std::uint32_t* flag, std::uint32_t value,
                       cudaStream_t stream);

// 16 bytes per thread and step; either pointer may be memory of a peer.
cudaError_t queue_copy(void* to, const void* from, std::size_t bytes, int blocks,
                       cudaStream_t stream);
// a = b + 3 c on arrays of `bytes` each.
cudaError_t queue_triad(float* a, const float* b, const float* c, std::size_t bytes, int blocks,
                        cudaStream_t stream);
cudaError_t queue_empty(cudaStream_t stream);

// One end of a ping-pong of `rounds`: stores i into *theirs and waits for *mine to become i; who does not `begin` waits first.
// *lost becomes 1 when the other end did not answer for some seconds.
cudaError_t queue_ping(volatile std::uint32_t* theirs, const volatile std::uint32_t* mine,
                       std::uint32_t rounds, bool begins, std::uint32_t* lost, cudaStream_t stream);

// Numbers of about 1 with random mantissas and signs: real operands draw the power that zeros do not.
enum class Element { fp8, bf16, fp16, fp32, fp64, int8 };
cudaError_t queue_fill(void* data, std::size_t bytes, Element element, cudaStream_t stream);

}  // namespace weft::cuda
