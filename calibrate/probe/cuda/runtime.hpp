// SPDX-License-Identifier: Apache-2.0
// Streams, events and memory of the CUDA runtime as values that clean up after themselves, and the two ways in which a test
// fails: TestFailed, after which the next one runs, and DeviceBroken, after which only another process can use the device.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "calibrate/probe/backend.hpp"

namespace weft::cuda {

// Sticky errors and kernels that never end.
struct DeviceBroken : TestFailed {
  using TestFailed::TestFailed;
};

void check(cudaError_t status, const char* what);
// A test has left the device unusable: from then on nothing is freed, because freeing waits for what never ends.
bool device_is_broken();
[[noreturn]] void give_up(const std::string& why);

// Makes `device` the current one.
void use(int device);

class Stream {
 public:
  explicit Stream(int device);
  ~Stream();
  Stream(Stream&& other) noexcept
      : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Stream& operator=(Stream&&) = delete;
  cudaStream_t get() const { return stream_; }
  int device() const { return device_; }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(int device);
  ~Event();
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event& operator=(Event&&) = delete;
  void record(const Stream& stream);
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};
Time between(const Event& start, const Event& end);

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(int device, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  template <class T = void>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

// Memory of the host, touched; on a NUMA node where the system allows it.
class HostMemory {
 public:
  HostMemory(std::size_t bytes, int numa, bool pinned);
  ~HostMemory();
  HostMemory(HostMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_), pinned_(other.pinned_) {}
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  HostMemory& operator=(HostMemory&&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
  bool pinned_;
};

// Holds what is queued on any number of streams until it is opened.
class Gate {
 public:
  Gate();
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void hold(const Stream& stream);
  void open();  // once all are held; the next hold() is of the next round

 private:
  std::uint32_t* flag_ = nullptr;
  std::uint32_t round_ = 1;
};

inline constexpr double kPatienceSeconds = 20;

// Until everything queued on the streams is done. Throws DeviceBroken after kPatienceSeconds; `failed` is asked meanwhile and
// says why there is no point in waiting.
void wait_for(const std::vector<const Stream*>& streams,
              const std::function<std::string()>& failed = {});

// Runs `work` on a thread of its own; throws DeviceBroken, and leaves the thread behind, when it does not end in time.
void with_deadline(double seconds, const char* what, std::function<void()> work);

double seconds_now();
Time time_of(double seconds);

// How often something that takes `estimate` seconds is repeated between two events, so that their resolution does not count.
int inner_repeats(double estimate);

}  // namespace weft::cuda
