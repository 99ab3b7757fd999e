// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/cuda/collectives.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <deque>

#include <fmt/format.h>

#include "calibrate/probe/cuda/compute.hpp"

namespace weft::cuda {
namespace {

constexpr double kInitSeconds = 60;
constexpr std::size_t kKept = 3;          // communicators: each takes memory on every GPU
constexpr double kOverlapSeconds = 8e-3;  // both sides run at least so long
constexpr double kGuessRate = 20e9;       // to choose how often a collective is repeated

const Nccl& library() {
  std::string why;
  const Nccl* found = nccl(&why);
  if (found == nullptr) throw TestFailed(why);
  return *found;
}

void check_nccl(ncclResult_t status, const char* what) {
  if (status == ncclSuccess) return;
  const std::string text = fmt::format("{}: NCCL says {}", what, library().error_string(status));
  if (status == ncclUnhandledCudaError) give_up(text);
  throw TestFailed(text);
}

// NCCL's variables for as long as a communicator is made.
class Forced {
 public:
  Forced(const char* name, std::string value) : name_(name) {
    if (value.empty()) return;
    std::ranges::transform(value, value.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (value == "SIMPLE") value = "Simple";
    if (const char* before = std::getenv(name)) before_ = before;
    had_ = std::getenv(name) != nullptr;
    set_ = true;
    ::setenv(name, value.c_str(), 1);
  }
  ~Forced() {
    if (!set_) return;
    if (had_) {
      ::setenv(name_, before_.c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Forced(const Forced&) = delete;
  Forced& operator=(const Forced&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool set_ = false, had_ = false;
};

ncclUniqueId parse_id(const std::string& text) {
  ncclUniqueId id{};
  if (text.size() != 2 * sizeof id.internal) throw TestFailed("the id of NCCL was damaged");
  for (std::size_t i = 0; i < sizeof id.internal; ++i) {
    unsigned value = 0;
    std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, value, 16);
    id.internal[i] = static_cast<char>(value);
  }
  return id;
}

}  // namespace

std::string new_unique_id() {
  ncclUniqueId id{};
  check_nccl(library().get_unique_id(&id), "an id");
  std::string out;
  for (const char c : id.internal) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

Communicator::Communicator(const ncclUniqueId& id, int ranks, const std::vector<LocalRank>& local,
                           const std::string& algorithm, const std::string& protocol)
    : ranks_(ranks),
      local_(local),
      shared_(std::make_shared<std::vector<ncclComm_t>>(local.size(), nullptr)) {
  const Nccl& nccl = library();
  const Forced one("NCCL_ALGO", algorithm), other("NCCL_PROTO", protocol);
  // By value: the thread may outlive this when NCCL hangs.
  with_deadline(kInitSeconds, "making a communicator", [=, comms = shared_, &nccl] {
    check_nccl(nccl.group_start(), "a group");
    for (std::size_t i = 0; i < local.size(); ++i) {
      use(local[i].device);
      check_nccl(nccl.init_rank(&(*comms)[i], ranks, id, local[i].rank), "a communicator");
    }
    check_nccl(nccl.group_end(), "a communicator");
  });
  comms_ = *shared_;
}

Communicator::~Communicator() {
  const Nccl* found = nccl();
  if (found == nullptr || device_is_broken()) return;
  const bool hangs = !trouble().empty();
  for (ncclComm_t comm : comms_) {
    if (comm != nullptr) (hangs ? found->abort : found->destroy)(comm);
  }
}

std::string Communicator::trouble() const {
  for (ncclComm_t comm : comms_) {
    ncclResult_t status = ncclSuccess;
    if (library().async_error(comm, &status) != ncclSuccess) continue;
    if (status != ncclSuccess && status != ncclInProgress)
      return fmt::format("NCCL says {}", library().error_string(status));
  }
  return {};
}

std::shared_ptr<Communicator> Communicators::get(const std::string& key, const std::string& id,
                                                 int ranks, const std::vector<LocalRank>& local,
                                                 const CollectiveTest& test) {
  for (auto at = kept_.begin(); at != kept_.end(); ++at) {
    if (at->first != key) continue;
    kept_.splice(kept_.begin(), kept_, at);
    return kept_.front().second;
  }
  if (kept_.size() >= kKept) kept_.pop_back();
  auto made =
      std::make_shared<Communicator>(parse_id(id), ranks, local, test.algorithm, test.protocol);
  kept_.emplace_front(key, made);
  return made;
}

namespace {

// The operation of a test on every GPU of this process, queued as one group.
class Operation {
 public:
  Operation(const CollectiveTest& test, const Communicator& communicator)
      : name_(test.collective),
        communicator_(communicator),
        count_(static_cast<std::size_t>(test.bytes.count) / sizeof(float)) {
    const auto ranks = static_cast<std::size_t>(communicator.ranks());
    count_ = std::max<std::size_t>(1, count_ / ranks) * ranks;
    for (const LocalRank& local : communicator.local()) {
      streams_.emplace_back(local.device);
      starts_.emplace_back(local.device);
      ends_.emplace_back(local.device);
      send_.emplace_back(local.device, count_ * sizeof(float));
      receive_.emplace_back(local.device, count_ * sizeof(float));
      check(cudaMemset(send_.back().as(), 0, count_ * sizeof(float)), "clearing a buffer");
      check(cudaDeviceSynchronize(), "clearing a buffer");
    }
  }

  std::deque<Stream>& streams() { return streams_; }
  void mark_start() {
    for (std::size_t i = 0; i < streams_.size(); ++i) starts_[i].record(streams_[i]);
  }
  void mark_end() {
    for (std::size_t i = 0; i < streams_.size(); ++i) ends_[i].record(streams_[i]);
  }
  // Of the GPU that took longest.
  Time took() const {
    Time longest{0};
    for (std::size_t i = 0; i < streams_.size(); ++i)
      longest = std::max(longest, between(starts_[i], ends_[i]));
    return longest;
  }

  void queue() {
    const Nccl& nccl = library();
    check_nccl(nccl.group_start(), "a group");
    for (std::size_t i = 0; i < streams_.size(); ++i) queue_one(nccl, i);
    check_nccl(nccl.group_end(), "a collective");
  }

  void wait() {
    std::vector<const Stream*> all;
    for (const Stream& stream : streams_) all.push_back(&stream);
    wait_for(all, [this] { return communicator_.trouble(); });
  }

 private:
  void queue_one(const Nccl& nccl, std::size_t i) {
    const ncclComm_t comm = communicator_.get(i);
    const cudaStream_t stream = streams_[i].get();
    const auto ranks = static_cast<std::size_t>(communicator_.ranks());
    const auto rank = static_cast<std::size_t>(communicator_.local()[i].rank);
    const float* send = send_[i].as<float>();
    float* receive = receive_[i].as<float>();
    if (name_ == "all_reduce") {
      check_nccl(nccl.all_reduce(send, receive, count_, ncclFloat, ncclSum, comm, stream), "it");
    } else if (name_ == "all_gather") {
      check_nccl(nccl.all_gather(send, receive, count_ / ranks, ncclFloat, comm, stream), "it");
    } else if (name_ == "reduce_scatter") {
      check_nccl(
          nccl.reduce_scatter(send, receive, count_ / ranks, ncclFloat, ncclSum, comm, stream),
          "it");
    } else if (name_ == "broadcast") {
      check_nccl(nccl.broadcast(send, receive, count_, ncclFloat, 0, comm, stream), "it");
    } else if (name_ == "all_to_all") {
      const std::size_t part = count_ / ranks;
      for (std::size_t peer = 0; peer < ranks; ++peer) {
        const int to = static_cast<int>(peer);
        check_nccl(nccl.send(send + peer * part, part, ncclFloat, to, comm, stream), "it");
        check_nccl(nccl.recv(receive + peer * part, part, ncclFloat, to, comm, stream), "it");
      }
    } else if (name_ == "send_recv") {
      const int next = static_cast<int>((rank + 1) % ranks);
      const int before = static_cast<int>((rank + ranks - 1) % ranks);
      check_nccl(nccl.send(send, count_, ncclFloat, next, comm, stream), "it");
      check_nccl(nccl.recv(receive, count_, ncclFloat, before, comm, stream), "it");
    } else {
      throw TestFailed(fmt::format("there is no collective {}", name_));
    }
  }

  std::string name_;
  const Communicator& communicator_;
  std::size_t count_;
  std::deque<Stream> streams_;
  std::deque<Event> starts_, ends_;
  std::deque<DeviceMemory> send_, receive_;
};

class CollectiveRun final : public PreparedTest {
 public:
  CollectiveRun(const CollectiveTest& test, std::shared_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)),
        operation_(test, *communicator_),
        inner_(inner_repeats(test.bytes.value() / kGuessRate + 20e-6)) {}

  std::vector<Time> once() override {
    operation_.mark_start();
    for (int i = 0; i < inner_; ++i) operation_.queue();
    operation_.mark_end();
    operation_.wait();
    return {Time{operation_.took().ps / inner_}};
  }

 private:
  std::shared_ptr<Communicator> communicator_;
  Operation operation_;
  int inner_;
};

// Products on one stream of each GPU and collectives on another, each as often as fills the same time alone.
class OverlapRun final : public PreparedTest {
 public:
  OverlapRun(const OverlapTest& test, std::shared_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)), operation_(test.collective, *communicator_) {
    const double guess = test.collective.bytes.value() / kGuessRate + 20e-6;
    collectives_ = std::clamp(static_cast<int>(kOverlapSeconds / guess), 2, 100);
    for (const LocalRank& local : communicator_->local()) {
      products_.push_back(
          std::make_unique<Product>(local.device, test.type, test.m, test.n, test.k));
      streams_.emplace_back(local.device);
      starts_.emplace_back(local.device);
      ends_.emplace_back(local.device);
    }
  }

  std::vector<Time> once() override {
    const Time kernel_alone = run_products(), collective_alone = run_collectives();
    const double fill = collectives_ * collective_alone.seconds() / kernel_alone.seconds();
    kernels_ = std::clamp(static_cast<int>(std::lround(fill)), 1, 400);
    start_products();
    operation_.mark_start();
    for (int i = 0; i < std::max(kernels_, collectives_); ++i) {
      if (i < kernels_) queue_products();
      if (i < collectives_) operation_.queue();
    }
    operation_.mark_end();
    end_products();
    wait();
    return {kernel_alone, collective_alone, Time{products_took().ps / kernels_},
            Time{operation_.took().ps / collectives_}};
  }

 private:
  void start_products() {
    for (std::size_t i = 0; i < streams_.size(); ++i) starts_[i].record(streams_[i]);
  }
  void end_products() {
    for (std::size_t i = 0; i < streams_.size(); ++i) ends_[i].record(streams_[i]);
  }
  void queue_products() {
    for (std::size_t i = 0; i < streams_.size(); ++i) products_[i]->queue(streams_[i]);
  }
  Time products_took() const { return between(starts_.front(), ends_.front()); }

  void wait() {
    operation_.wait();
    std::vector<const Stream*> all;
    for (const Stream& stream : streams_) all.push_back(&stream);
    wait_for(all);
  }

  Time run_products() {
    start_products();
    for (int i = 0; i < kernels_; ++i) queue_products();
    end_products();
    wait();
    return Time{products_took().ps / kernels_};
  }

  Time run_collectives() {
    operation_.mark_start();
    for (int i = 0; i < collectives_; ++i) operation_.queue();
    operation_.mark_end();
    operation_.wait();
    return Time{operation_.took().ps / collectives_};
  }

  std::shared_ptr<Communicator> communicator_;
  Operation operation_;
  std::vector<std::unique_ptr<Product>> products_;
  std::deque<Stream> streams_;
  std::deque<Event> starts_, ends_;
  int kernels_ = 4;
  int collectives_;  // the same in every process: another one would wait for ever
};

}  // namespace

std::unique_ptr<PreparedTest> prepare_collective(const CollectiveTest& test,
                                                 std::shared_ptr<Communicator> communicator) {
  return std::make_unique<CollectiveRun>(test, std::move(communicator));
}

std::unique_ptr<PreparedTest> prepare_overlap(const OverlapTest& test,
                                              std::shared_ptr<Communicator> communicator) {
  return std::make_unique<OverlapRun>(test, std::move(communicator));
}

}  // namespace weft::cuda
