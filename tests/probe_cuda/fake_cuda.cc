// SPDX-License-Identifier: Apache-2.0
#ifdef WEFT_FAKE_CUDA
#include "tests/probe_cuda/fake_cuda.hpp"

#include <cstring>
#include <map>
#include <set>

#include <sys/mman.h>

#include "calibrate/probe/cuda/kernels.hpp"

namespace weft::fake {
namespace {

constexpr double kCall = 2e-6, kRate = 50e9;

struct FakeStream {
  int device = 0;
  double clock = 0;
  bool capturing = false;
};
struct FakeEvent {
  double at = -1;
};
struct Memory {
  int device = -1;
  std::size_t bytes = 0;
};

int device = 0;
std::map<const char*, Memory> memories;
std::set<std::pair<int, int>> reachable;
FakeStream null_stream;

FakeStream& stream_of(cudaStream_t stream) {
  return stream == nullptr ? null_stream : *reinterpret_cast<FakeStream*>(stream);
}

// -1: memory of the host.
int owner_of(const void* pointer) {
  const auto* at = static_cast<const char*>(pointer);
  auto after = memories.upper_bound(at);
  if (after == memories.begin()) return -1;
  --after;
  return at < after->first + after->second.bytes ? after->second.device : -1;
}

// A kernel of the current device that reads or writes there.
void touch(const void* pointer, const char* what) {
  const int owner = owner_of(pointer);
  if (owner >= 0 && owner != device && !reachable.contains({device, owner}))
    complain(std::string(what) + " of memory that is not reachable");
}

cudaError_t kernel(cudaStream_t stream, double seconds) {
  if (stream != nullptr && stream_of(stream).device != device)
    complain("a kernel on a stream of another device");
  spend(stream, seconds);
  return cudaSuccess;
}

}  // namespace

World& world() {
  static World the;
  return the;
}
void complain(const std::string& what) { world().wrong.push_back(what); }
int current_device() { return device; }
void spend(cudaStream_t stream, double seconds) {
  if (!stream_of(stream).capturing) stream_of(stream).clock += seconds;
}

}  // namespace weft::fake

using namespace weft::fake;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = world().devices;
  return world().devices > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaSetDevice(int which) {
  if (which < 0 || which >= world().devices) return cudaErrorInvalidDevice;
  device = which;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error";
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
  *value = what == cudaDevAttrComputeCapabilityMajor   ? 9
           : what == cudaDevAttrComputeCapabilityMinor ? 0
           : what == cudaDevAttrMultiProcessorCount    ? 132
                                                       : 3;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int) {
  std::strcpy(out->name, "Fake H100");
  out->totalGlobalMem = std::size_t{80} << 30;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* bus, int, int which) {
  std::strcpy(bus, which == 0 ? "0000:0A:00.0" : "0000:0B:00.0");
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* access, int a, int b) {
  *access = world().peers && a != b ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return reachable.insert({device, peer}).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  *free = *all = std::size_t{80} << 30;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  if (world().no_memory) {
    world().no_memory = false;
    return cudaErrorMemoryAllocation;
  }
  *out = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
  memories[static_cast<const char*>(*out)] = {device, bytes};
  ++world().live;
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  const auto at = memories.find(static_cast<const char*>(pointer));
  if (at == memories.end()) {
    complain("memory freed that is none");
    return cudaErrorInvalidValue;
  }
  ::munmap(pointer, at->second.bytes);
  memories.erase(at);
  --world().live;
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** out, std::size_t bytes, unsigned) {
  *out = ::calloc(1, bytes);
  ++world().live;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* pointer) {
  ::free(pointer);
  --world().live;
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void*, std::size_t, unsigned) {
  ++world().live;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void*) {
  --world().live;
  return cudaSuccess;
}
cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) {
  if (owner_of(pointer) != device) complain("memory of another device is set");
  if (bytes <= 4096) std::memset(pointer, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  if (bytes <= 4096) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void*, const void*, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return kernel(stream, kCall + static_cast<double>(bytes) / kRate);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t stream) {
  if (owner_of(to) != to_device || owner_of(from) != from_device)
    complain("a copy with the devices of other memory");
  return kernel(stream, kCall + static_cast<double>(bytes) / kRate);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  *out = reinterpret_cast<cudaStream_t>(new FakeStream{device, 0, false});
  ++world().live;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete reinterpret_cast<FakeStream*>(stream);
  --world().live;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) {
  if (world().illegal) return cudaErrorIllegalAddress;
  if (world().gates > 0) complain("waiting for what nobody lets go");
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream_of(stream).capturing = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  stream_of(stream).capturing = false;
  *graph = reinterpret_cast<cudaGraph_t>(new int{0});
  ++world().live;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t, unsigned long long) {
  *out = reinterpret_cast<cudaGraphExec_t>(new int{0});
  ++world().live;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t stream) { return kernel(stream, 1e-4); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete reinterpret_cast<int*>(exec);
  --world().live;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<int*>(graph);
  --world().live;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* out) {
  *out = reinterpret_cast<cudaEvent_t>(new FakeEvent{});
  ++world().live;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<FakeEvent*>(event);
  --world().live;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  reinterpret_cast<FakeEvent*>(event)->at = stream_of(stream).clock;
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const auto *a = reinterpret_cast<FakeEvent*>(start), *b = reinterpret_cast<FakeEvent*>(end);
  if (a->at < 0 || b->at < 0) return cudaErrorInvalidResourceHandle;
  *milliseconds = static_cast<float>((b->at - a->at) * 1e3);
  return cudaSuccess;
}

}  // extern "C"

// ---- the probe's kernels

namespace weft::cuda {

cudaError_t queue_gate(const volatile std::uint32_t* flag, std::uint32_t value,
                       cudaStream_t stream) {
  if (*flag >= value) fake::complain("a gate that is open already");
  return fake::kernel(stream, 1e-6);
}
cudaError_t queue_copy(void* to, const void* from, std::size_t bytes, int, cudaStream_t stream) {
  fake::touch(to, "a write");
  fake::touch(from, "a read");
  return fake::kernel(stream, 3e-6 + static_cast<double>(bytes) / fake::kRate);
}
cudaError_t queue_triad(float* a, const float* b, const float* c, std::size_t bytes, int,
                        cudaStream_t stream) {
  for (const float* array : {static_cast<const float*>(a), b, c}) fake::touch(array, "a stream");
  return fake::kernel(stream, 3e-6 + 3 * static_cast<double>(bytes) / 2e12);
}
cudaError_t queue_empty(cudaStream_t stream) { return fake::kernel(stream, 2e-6); }
cudaError_t queue_ping(volatile std::uint32_t* theirs, const volatile std::uint32_t* mine,
                       std::uint32_t rounds, bool, std::uint32_t* lost, cudaStream_t stream) {
  fake::touch(const_cast<const std::uint32_t*>(theirs), "a flag");
  fake::touch(const_cast<const std::uint32_t*>(mine), "a flag");
  fake::touch(lost, "a flag");
  return fake::kernel(stream, rounds * 2e-6);
}
cudaError_t queue_fill(void* data, std::size_t, Element, cudaStream_t stream) {
  fake::touch(data, "filling");
  return fake::kernel(stream, 1e-5);
}

}  // namespace weft::cuda
#endif
