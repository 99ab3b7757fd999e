// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/cuda/copies.hpp"

#include <algorithm>
#include <charconv>
#include <deque>

#include <fmt/format.h>

#include "calibrate/probe/cuda/kernels.hpp"
#include "calibrate/probe/cuda/runtime.hpp"

namespace weft::cuda {
namespace {

constexpr int kBlocksPerSm = 2;
constexpr std::uint32_t kRounds = 1000;
constexpr int kCalls = 20;

// Peer access stays on once it is on: it is a property of this process only.
void reach(int from, int to) {
  int access = 0;
  check(cudaDeviceCanAccessPeer(&access, from, to), "asking for peer access");
  if (access == 0) return;
  use(from);
  const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  check(status, "peer access");
}

class CopyGroup final : public PreparedTest {
 public:
  CopyGroup(const CopyTest& test, const Server& server)
      : method_(test.method), server_(server), gated_(test.peer_access.value_or(true)) {
    for (const CopyEnds& ends : test.transfers) add(ends);
    if (copies_.size() == 1) {
      const auto estimate = static_cast<double>(copies_.front().bytes) / 50e9 + 2e-6;
      inner_ = method_ == CopyMethod::pageable ? 1 : inner_repeats(estimate);
    }
  }

  std::vector<Time> once() override {
    if (method_ == CopyMethod::pageable) return by_host();
    std::vector<const Stream*> streams;
    for (Copy& copy : copies_) {
      if (gated_) gate_.hold(copy.stream);
      copy.start.record(copy.stream);
      for (int i = 0; i < inner_; ++i) queue(copy);
      copy.end.record(copy.stream);
      streams.push_back(&copy.stream);
    }
    gate_.open();
    wait_for(streams);
    std::vector<Time> out;
    for (const Copy& copy : copies_) out.push_back(Time{between(copy.start, copy.end).ps / inner_});
    return out;
  }

  std::optional<Frequency> clock() override {
    const auto device = static_cast<std::size_t>(copies_.front().stream.device());
    return sm_clock(server_.host.gpus[device].bus);
  }

 private:
  struct Copy {
    Stream stream;
    Event start, end;
    void *to = nullptr, *from = nullptr;
    int to_device = -1, from_device = -1;
    std::size_t bytes = 0;
  };

  void add(const CopyEnds& ends) {
    const Place from = place_of(ends.from), to = place_of(ends.to);
    const int device = from.device >= 0 ? from.device : to.device;
    const auto bytes = static_cast<std::size_t>(ends.bytes.count);
    Copy copy{Stream(device), Event(device), Event(device)};
    copy.bytes = bytes;
    copy.from_device = from.device;
    copy.to_device = to.device;
    if (from.device >= 0 && to.device >= 0) {
      reach(from.device, to.device);
      reach(to.device, from.device);
    }
    copy.from = memory(from, bytes);
    copy.to = memory(to, bytes);
    copies_.push_back(std::move(copy));
  }

  void* memory(const Place& place, std::size_t bytes) {
    if (place.device >= 0) {
      device_memory_.emplace_back(place.device, bytes);
      return device_memory_.back().as();
    }
    const auto& nodes = server_.numa_nodes.at(static_cast<std::size_t>(place.socket));
    host_memory_.emplace_back(bytes, nodes.empty() ? -1 : nodes.front(),
                              method_ != CopyMethod::pageable);
    return host_memory_.back().data();
  }

  void queue(const Copy& copy) {
    use(copy.stream.device());
    if (copy.from_device < 0 || copy.to_device < 0) {
      check(cudaMemcpyAsync(copy.to, copy.from, copy.bytes, cudaMemcpyDefault, copy.stream.get()),
            "a copy");
    } else if (method_ == CopyMethod::sm) {
      const int sms = server_.host.gpus[static_cast<std::size_t>(copy.from_device)].sms;
      check(queue_copy(copy.to, copy.from, copy.bytes, sms * kBlocksPerSm, copy.stream.get()),
            "a copy by kernel");
    } else {
      check(cudaMemcpyPeerAsync(copy.to, copy.to_device, copy.from, copy.from_device, copy.bytes,
                                copy.stream.get()),
            "a copy between GPUs");
    }
  }

  // The call copies pageable memory itself: its time is the host's.
  std::vector<Time> by_host() {
    const Copy& copy = copies_.front();
    use(copy.stream.device());
    const double start = seconds_now();
    check(cudaMemcpy(copy.to, copy.from, copy.bytes, cudaMemcpyDefault), "a pageable copy");
    check(cudaDeviceSynchronize(), "a pageable copy");
    return {time_of(seconds_now() - start)};
  }

  CopyMethod method_;
  const Server& server_;
  bool gated_;  // a copy that the driver stages itself may make the host wait for what is before it
  std::deque<DeviceMemory> device_memory_;
  std::deque<HostMemory> host_memory_;
  std::deque<Copy> copies_;
  Gate gate_;
  int inner_ = 1;
};

// Two kernels that answer each other. Half of a round is one way.
class FlagPing final : public PreparedTest {
 public:
  FlagPing(int a, int b)
      : a_(a),
        b_(b),
        flag_a_(a, 64),
        flag_b_(b, 64),
        lost_a_(a, 64),
        lost_b_(b, 64),
        start_(a),
        end_(a) {
    reach(a, b);
    reach(b, a);
  }

  std::vector<Time> once() override {
    for (const auto& [device, flag, lost] :
         {std::tuple{a_.device(), &flag_a_, &lost_a_}, {b_.device(), &flag_b_, &lost_b_}}) {
      use(device);
      check(cudaMemset(flag->as(), 0, 64), "clearing a flag");
      check(cudaMemset(lost->as(), 0, 64), "clearing a flag");
      check(cudaDeviceSynchronize(), "clearing a flag");
    }
    ping(b_, flag_a_, flag_b_, lost_b_, false);
    start_.record(a_);
    ping(a_, flag_b_, flag_a_, lost_a_, true);
    end_.record(a_);
    wait_for({&a_, &b_});
    std::uint32_t lost = 0;
    check(cudaMemcpy(&lost, lost_a_.as(), sizeof lost, cudaMemcpyDefault), "reading a flag");
    if (lost != 0) throw TestFailed("the other GPU did not answer");
    return {Time{between(start_, end_).ps / (2 * kRounds)}};
  }

 private:
  static void ping(const Stream& stream, const DeviceMemory& theirs, const DeviceMemory& mine,
                   const DeviceMemory& lost, bool begins) {
    use(stream.device());
    check(queue_ping(theirs.as<std::uint32_t>(), mine.as<std::uint32_t>(), kRounds, begins,
                     lost.as<std::uint32_t>(), stream.get()),
          "starting a kernel");
  }

  Stream a_, b_;
  DeviceMemory flag_a_, flag_b_, lost_a_, lost_b_;
  Event start_, end_;
};

// One call of a copy, and waiting for it.
class CopyPing final : public PreparedTest {
 public:
  CopyPing(const LatencyTest& test, int a, int b)
      : a_(a),
        b_(b),
        stream_(a),
        from_(a, 64),
        to_(b, 64),
        bytes_(static_cast<std::size_t>(std::min<std::int64_t>(64, test.bytes.count))) {
    reach(a, b);
  }

  std::vector<Time> once() override {
    use(a_);
    const double start = seconds_now();
    for (int i = 0; i < kCalls; ++i) {
      check(cudaMemcpyPeerAsync(to_.as(), b_, from_.as(), a_, bytes_, stream_.get()), "a copy");
      check(cudaStreamSynchronize(stream_.get()), "a copy");
    }
    return {time_of((seconds_now() - start) / kCalls)};
  }

 private:
  int a_, b_;
  Stream stream_;
  DeviceMemory from_, to_;
  std::size_t bytes_;
};

}  // namespace

Place place_of(const std::string& name) {
  const std::string_view bare = std::string_view(name).substr(name.find('/') + 1);
  Place out;
  int* number = bare.starts_with("gpu")   ? &out.device
                : bare.starts_with("cpu") ? &out.socket
                                          : nullptr;
  if (number != nullptr) {
    const auto [end, error] = std::from_chars(bare.data() + 3, bare.data() + bare.size(), *number);
    if (error == std::errc{} && end == bare.data() + bare.size()) return out;
  }
  throw TestFailed(fmt::format("{} is no GPU and no memory of a host", name));
}

std::unique_ptr<PreparedTest> prepare_copies(const CopyTest& test, const Server& server) {
  return std::make_unique<CopyGroup>(test, server);
}

std::unique_ptr<PreparedTest> prepare_latency(const LatencyTest& test, const Server&) {
  const int a = place_of(test.from).device, b = place_of(test.to).device;
  if (a < 0 || b < 0) throw TestFailed("latency is measured between GPUs");
  if (test.method == PingMethod::flag) return std::make_unique<FlagPing>(a, b);
  return std::make_unique<CopyPing>(test, a, b);
}

}  // namespace weft::cuda
