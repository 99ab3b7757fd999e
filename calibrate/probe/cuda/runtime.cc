// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/cuda/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <thread>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calibrate/probe/cuda/kernels.hpp"

namespace weft::cuda {
namespace {

constexpr double kBatchSeconds = 200e-6;  // 400 steps of an event's clock
constexpr int kMostInner = 20;
constexpr int kBind = 2;  // MPOL_BIND

bool is_sticky(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace

namespace {
std::atomic<bool> broken{false};
}  // namespace

bool device_is_broken() { return broken; }

void give_up(const std::string& why) {
  broken = true;
  throw DeviceBroken(why);
}

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next test does not see it
  const std::string text = fmt::format("{}: {}", what, cudaGetErrorString(status));
  if (is_sticky(status)) give_up(text);
  throw TestFailed(text);
}

void use(int device) { check(cudaSetDevice(device), "choosing a device"); }

Stream::Stream(int device) : device_(device) {
  use(device);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
}
Stream::~Stream() {
  if (stream_ != nullptr && !broken) cudaStreamDestroy(stream_);
}

Event::Event(int device) {
  use(device);
  check(cudaEventCreate(&event_), "an event");
}
Event::~Event() {
  if (event_ != nullptr && !broken) cudaEventDestroy(event_);
}
void Event::record(const Stream& stream) {
  use(stream.device());
  check(cudaEventRecord(event_, stream.get()), "recording an event");
}
Time between(const Event& start, const Event& end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start.get(), end.get()), "reading two events");
  return time_of(static_cast<double>(milliseconds) * 1e-3);
}

DeviceMemory::DeviceMemory(int device, std::size_t bytes) {
  use(device);
  check(cudaMalloc(&data_, bytes), "memory of the device");
}
DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr && !broken) cudaFree(data_);
}

HostMemory::HostMemory(std::size_t bytes, int numa, bool pinned) : bytes_(bytes), pinned_(pinned) {
  data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    throw TestFailed(fmt::format("memory of the host: {}", std::strerror(errno)));
  }
  if (numa >= 0 && numa < 1024) {
    unsigned long nodes[16] = {};
    nodes[static_cast<std::size_t>(numa) / 64] = 1UL << (static_cast<std::size_t>(numa) % 64);
    ::syscall(SYS_mbind, data_, bytes, kBind, nodes, 1024UL,
              0U);  // best effort: containers forbid it
  }
  std::memset(data_, 1, bytes);
  if (!pinned_) return;
  const cudaError_t status = cudaHostRegister(data_, bytes, cudaHostRegisterPortable);
  if (status != cudaSuccess) {
    ::munmap(data_, bytes_);
    data_ = nullptr;
    check(status, "pinning memory of the host");
  }
}
HostMemory::~HostMemory() {
  if (data_ == nullptr || broken) return;
  if (pinned_) cudaHostUnregister(data_);
  ::munmap(data_, bytes_);
}

Gate::Gate() {
  void* flag = nullptr;
  check(cudaHostAlloc(&flag, 64, cudaHostAllocPortable | cudaHostAllocMapped), "a flag");
  flag_ = static_cast<std::uint32_t*>(flag);
  *flag_ = 0;
}
Gate::~Gate() {
  open();
  if (!broken) cudaFreeHost(flag_);
}
void Gate::hold(const Stream& stream) {
  use(stream.device());
  check(queue_gate(flag_, round_, stream.get()), "starting a kernel");
}
void Gate::open() {
  __atomic_store_n(flag_, round_, __ATOMIC_RELEASE);
  ++round_;
}

void wait_for(const std::vector<const Stream*>& streams,
              const std::function<std::string()>& failed) {
  const double start = seconds_now();
  for (const Stream* stream : streams) {
    use(stream->device());
    for (int polls = 0;; ++polls) {
      const cudaError_t status = cudaStreamQuery(stream->get());
      if (status == cudaSuccess) break;
      if (status != cudaErrorNotReady) check(status, "running it");
      if ((polls & 1023) != 1023) continue;
      if (failed) {
        if (const std::string why = failed(); !why.empty()) give_up(why);
      }
      if (seconds_now() - start > kPatienceSeconds)
        give_up(fmt::format("did not end within {:.0f} s", kPatienceSeconds));
      std::this_thread::yield();
    }
  }
}

void with_deadline(double seconds, const char* what, std::function<void()> work) {
  auto promise = std::make_shared<std::promise<void>>();
  std::future<void> done = promise->get_future();
  std::thread([promise, work = std::move(work)] {
    try {
      work();
      promise->set_value();
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  if (done.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready)
    give_up(fmt::format("{} did not end within {:.0f} s", what, seconds));
  done.get();
}

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

Time time_of(double seconds) {
  return Time{static_cast<std::int64_t>(std::llround(seconds * 1e12))};
}

int inner_repeats(double estimate) {
  return static_cast<int>(
      std::clamp(kBatchSeconds / std::max(estimate, 1e-9), 1.0, static_cast<double>(kMostInner)));
}

}  // namespace weft::cuda
