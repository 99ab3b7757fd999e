// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/crew.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "calibrate/probe/test_message.hpp"

namespace weft {
namespace {

Json message(std::string_view what) {
  Json out = Json::object();
  out.set("what", what);
  return out;
}

std::string text_of(const Json& document, std::string_view key) {
  const Json* value = document.find(key);
  return value != nullptr && value->is_string() ? value->text : std::string{};
}

Json strings(const std::vector<std::string>& items) {
  Json out = Json::array();
  for (const std::string& item : items) out.push(item);
  return out;
}

std::vector<std::string> strings_of(const Json& document, std::string_view key) {
  std::vector<std::string> out;
  if (const Json* list = document.find(key)) {
    for (const Json& item : list->items) out.push_back(item.text);
  }
  return out;
}

Json write_part(const CrewPart& part) {
  Json out = Json::object();
  out.set("context", part.context);
  out.set("ranks", part.ranks);
  Json own = Json::array();
  for (const int rank : part.own_ranks) own.push(rank);
  out.set("own_ranks", std::move(own));
  out.set("gpus", strings(part.gpus));
  return out;
}

CrewPart read_part(const Json& document) {
  CrewPart out;
  out.context = text_of(document, "context");
  if (const Json* ranks = document.find("ranks")) out.ranks = static_cast<int>(ranks->integer);
  if (const Json* own = document.find("own_ranks")) {
    for (const Json& rank : own->items) out.own_ranks.push_back(static_cast<int>(rank.integer));
  }
  out.gpus = strings_of(document, "gpus");
  return out;
}

std::vector<Time> times_of(const Json& document) {
  std::vector<Time> out;
  if (const Json* times = document.find("times")) {
    for (const Json& time : times->items) out.push_back(Time{time.integer});
  }
  return out;
}

}  // namespace

// Runs on several processes at once. Those of the others go first: they wait for this one in their collectives.
class CrewTest final : public PreparedTest {
 public:
  CrewTest(Crew& crew, std::vector<std::size_t> others, std::unique_ptr<PreparedTest> own)
      : crew_(crew), others_(std::move(others)), own_(std::move(own)) {}

  ~CrewTest() override {
    for (const std::size_t process : others_) {
      if (crew_.lost_) return;
      try {
        crew_.processes_[process].channel.send(message("drop"));
        crew_.processes_[process].channel.receive(Crew::kAnswer);
      } catch (const ChannelLost&) {
        crew_.lost_ = true;
      }
    }
  }

  std::vector<Time> once() override {
    try {
      for (const std::size_t process : others_)
        crew_.processes_[process].channel.send(message("once"));
      std::string failure;
      std::vector<Time> out;
      if (own_) {
        try {
          out = own_->once();
        } catch (const TestFailed& failed) {
          failure = failed.what();
        }
      }
      for (const std::size_t process : others_) {
        const Json reply = crew_.processes_[process].channel.receive(Crew::kAnswer);
        if (const std::string why = text_of(reply, "failed"); !why.empty()) failure = why;
        if (reply.find("broken") != nullptr) crew_.lost_ = true;
        const std::vector<Time> times = times_of(reply);
        if (out.empty()) out = times;
        for (std::size_t i = 0; i < std::min(out.size(), times.size()); ++i)
          out[i] = std::max(out[i], times[i]);
      }
      if (!failure.empty()) throw TestFailed(failure);
      if (out.empty()) throw TestFailed("nobody measured it");
      return out;
    } catch (const ChannelLost& lost) {
      crew_.lost_ = true;
      throw TestFailed(lost.what());
    }
  }

  std::optional<Frequency> clock() override { return own_ ? own_->clock() : std::nullopt; }

  std::vector<MessageTest> messages() override {
    if (own_) return own_->messages();
    throw TestFailed("tools of another server are not run");
  }

 private:
  Crew& crew_;
  std::vector<std::size_t> others_;
  std::unique_ptr<PreparedTest> own_;
};

Crew::Crew(std::unique_ptr<CrewMember> member, const Launch& launch)
    : member_(std::move(member)), launch_(launch) {
  try {
    gather();
  } catch (const ChannelLost& lost) {
    throw NoMachine(lost.what());
  }
}

Crew::~Crew() {
  for (std::size_t i = 1; i < processes_.size(); ++i) {
    try {
      processes_[i].channel.send(message("end"));
    } catch (const ChannelLost&) {
    }
  }
}

void Crew::gather() {
  Json hello = message("hello");
  hello.set("rank", launch_.rank);
  hello.set("machine", write_machine(member_->machine()));
  hello.set("own", strings(member_->own()));
  if (launch_.rank > 0) {
    first_ = CrewChannel::connect(launch_.master, launch_.port, kComing);
    first_.send(hello);
    return;
  }
  processes_.resize(static_cast<std::size_t>(launch_.size));
  learn(processes_[0], hello);
  if (launch_.size > 1) {
    Listener listener(launch_.port);
    for (int i = 1; i < launch_.size; ++i) {
      CrewChannel channel = listener.accept(kComing);
      const Json document = channel.receive(kComing);
      const Json* rank = document.find("rank");
      if (rank == nullptr || rank->integer < 1 || rank->integer >= launch_.size)
        throw ChannelLost("a process does not know its rank");
      Process& process = processes_[static_cast<std::size_t>(rank->integer)];
      learn(process, document);
      process.channel = std::move(channel);
    }
  }
  // Servers in the order of their lowest process.
  std::vector<std::string> hosts;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    const std::string host = process.machine.hosts.empty() ? "" : process.machine.hosts[0].host;
    const auto known = std::ranges::find(hosts, host);
    process.server = static_cast<int>(known - hosts.begin());
    if (known != hosts.end()) continue;
    hosts.push_back(host);
    hands_.push_back(i);
  }
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    for (const std::string& local : processes_[i].own)
      owners_.emplace_back(global_name(processes_[i].server, local), Owner{i, local});
  }
}

void Crew::learn(Process& process, const Json& hello) {
  const Json* machine = hello.find("machine");
  auto read = machine == nullptr ? std::nullopt : read_machine(*machine);
  if (!read) throw ChannelLost("a process does not say what its server is");
  process.machine = std::move(*read);
  process.own = strings_of(hello, "own");
}

std::string Crew::global_name(int server, const std::string& local) const {
  return hands_.size() > 1 ? fmt::format("server{}/{}", server, local) : local;
}

const Crew::Owner& Crew::owner(const std::string& gpu) const {
  const auto found = std::ranges::find(owners_, gpu, &std::pair<std::string, Owner>::first);
  if (found == owners_.end()) throw TestFailed(fmt::format("no process drives {}", gpu));
  return found->second;
}

ProbeMachine Crew::machine() {
  ProbeMachine out = processes_[0].machine;
  out.hosts.clear();
  out.gpus.clear();
  out.paths.clear();
  out.nics.clear();
  out.nic_gpus.clear();
  out.gpus_per_process = static_cast<int>(processes_[0].own.size());
  struct At {
    std::size_t server, index;
  };
  std::vector<At> places;
  for (std::size_t server = 0; server < hands_.size(); ++server) {
    const ProbeMachine& machine = processes_[hands_[server]].machine;
    out.hosts.push_back(machine.hosts.at(0));
    out.hosts.back().server = static_cast<int>(server);
    const int number = static_cast<int>(server);
    for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
      ProbeGpu gpu = machine.gpus[i];
      gpu.name = global_name(number, gpu.name);
      const auto driven =
          std::ranges::find(owners_, gpu.name, &std::pair<std::string, Owner>::first);
      if (driven == owners_.end()) continue;
      gpu.server = number;
      if (!gpu.near.empty()) gpu.near = global_name(number, gpu.near);
      for (std::string& far : gpu.far) far = global_name(number, far);
      out.gpus.push_back(std::move(gpu));
      places.push_back({server, i});
    }
    if (server == 0) {  // tools run on the first server only
      for (const std::string& nic : machine.nics) out.nics.push_back(global_name(number, nic));
      for (const std::string& gpu : machine.nic_gpus)
        out.nic_gpus.push_back(gpu.empty() ? gpu : global_name(number, gpu));
    }
  }
  for (const At& from : places) {
    auto& row = out.paths.emplace_back();
    for (const At& to : places) {
      const ProbeMachine& machine = processes_[hands_[from.server]].machine;
      row.push_back(from.server == to.server ? machine.paths[from.index][to.index] : ProbePath{});
    }
  }
  return out;
}

// The test in the names of the one server that it is about, and who does it.
PlannedTest Crew::localised(const PlannedTest& test, std::size_t& process) const {
  PlannedTest out = test;
  int server = -1;
  const auto local = [&](std::string& name) {
    int here = 0;
    const std::size_t slash = name.find('/');
    if (hands_.size() > 1 && slash != std::string::npos) {
      for (std::size_t s = 0; s < hands_.size(); ++s) {
        if (name.compare(0, slash, fmt::format("server{}", s)) == 0) here = static_cast<int>(s);
      }
      name = name.substr(slash + 1);
    }
    if (server >= 0 && server != here) throw TestFailed("there is no copy call between servers");
    server = here;
  };
  if (auto* copy = std::get_if<CopyTest>(&out.what)) {
    // Transfers of several servers at once would need their clocks to agree.
    for (CopyEnds& ends : copy->transfers) {
      local(ends.from);
      local(ends.to);
    }
  } else if (auto* latency = std::get_if<LatencyTest>(&out.what)) {
    local(latency->from);
    local(latency->to);
  } else if (auto* kernel = std::get_if<GpuKernelTest>(&out.what)) {
    local(kernel->gpu);
  } else if (auto* tool = std::get_if<MessageToolTest>(&out.what)) {
    local(tool->nic);
    if (!tool->gpu.empty()) local(tool->gpu);
  }
  process = hands_.at(static_cast<std::size_t>(std::max(0, server)));
  return out;
}

Json Crew::ask(std::size_t process, const Json& what) {
  try {
    processes_[process].channel.send(what);
    return processes_[process].channel.receive(kAnswer);
  } catch (const ChannelLost& lost) {
    lost_ = true;
    throw TestFailed(lost.what());
  }
}

std::unique_ptr<PreparedTest> Crew::prepare(const PlannedTest& test) {
  if (const auto* collective = std::get_if<CollectiveTest>(&test.what))
    return prepare_shared(test, *collective);
  if (const auto* overlap = std::get_if<OverlapTest>(&test.what))
    return prepare_shared(test, overlap->collective);
  std::size_t process = 0;
  const PlannedTest local = localised(test, process);
  if (process == 0) return member_->prepare(local);
  Json request = message("prepare");
  request.set("test", write_test(local));
  const Json reply = ask(process, request);
  if (const std::string why = text_of(reply, "failed"); !why.empty()) throw TestFailed(why);
  return std::make_unique<CrewTest>(*this, std::vector{process}, nullptr);
}

std::string Crew::context_for(const CollectiveTest& test) {
  std::string key = test.algorithm + " " + test.protocol;
  for (const std::string& gpu : test.gpus) key += " " + gpu;
  const auto known = std::ranges::find(contexts_, key, &std::pair<std::string, std::string>::first);
  std::string context = known == contexts_.end() ? member_->new_context() : known->second;
  if (known != contexts_.end()) contexts_.erase(known);
  contexts_.emplace_back(key, context);
  if (contexts_.size() > kContexts) contexts_.erase(contexts_.begin());
  return context;
}

std::unique_ptr<PreparedTest> Crew::prepare_shared(const PlannedTest& test,
                                                   const CollectiveTest& collective) {
  std::vector<CrewPart> parts(processes_.size());
  for (std::size_t rank = 0; rank < collective.gpus.size(); ++rank) {
    const Owner& owned = owner(collective.gpus[rank]);
    parts[owned.process].own_ranks.push_back(static_cast<int>(rank));
    parts[owned.process].gpus.push_back(owned.local);
  }
  const std::string context = context_for(collective);
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].context = context;
    parts[i].ranks = static_cast<int>(collective.gpus.size());
    if (i > 0 && !parts[i].gpus.empty()) others.push_back(i);
  }
  std::string failure;
  std::unique_ptr<PreparedTest> own;
  try {
    for (const std::size_t i : others) {
      Json request = message("prepare");
      request.set("test", write_test(test));
      request.set("part", write_part(parts[i]));
      processes_[i].channel.send(request);
    }
    if (!parts[0].gpus.empty()) {
      try {
        own = member_->join(test, parts[0]);
      } catch (const TestFailed& failed) {
        failure = failed.what();
      }
    }
    for (const std::size_t i : others) {
      const Json reply = processes_[i].channel.receive(kAnswer);
      if (const std::string why = text_of(reply, "failed"); !why.empty()) failure = why;
      if (reply.find("broken") != nullptr) lost_ = true;
    }
  } catch (const ChannelLost& lost) {
    lost_ = true;
    throw TestFailed(lost.what());
  }
  if (!failure.empty()) {
    contexts_.clear();  // some may have it and some not
    throw TestFailed(failure);
  }
  return std::make_unique<CrewTest>(*this, std::move(others), std::move(own));
}

Json Crew::answer(const Json& request) {
  Json out = Json::object();
  try {
    const std::string what = text_of(request, "what");
    if (what == "prepare") {
      const Json *document = request.find("test"), *part = request.find("part");
      const auto test = document == nullptr ? std::nullopt : read_test(*document);
      if (!test) throw TestFailed("a test that cannot be read");
      serving_.reset();
      serving_ = part != nullptr ? member_->join(*test, read_part(*part)) : member_->prepare(*test);
      out.set("ready", true);
    } else if (what == "once") {
      if (!serving_) throw TestFailed("nothing is prepared");
      Json times = Json::array();
      for (const Time time : serving_->once()) times.push(time.ps);
      out.set("times", std::move(times));
    } else {
      serving_.reset();
      out.set("ready", true);
    }
  } catch (const TestFailed& failed) {
    out.set("failed", failed.what());
  }
  if (member_->broken()) out.set("broken", true);
  return out;
}

bool Crew::serve() {
  if (launch_.rank == 0) return false;
  constexpr double kDay = 86'400;  // the first process may be busy with what concerns others
  try {
    for (;;) {
      const Json request = first_.receive(kDay);
      if (text_of(request, "what") == "end") break;
      first_.send(answer(request));
    }
  } catch (const ChannelLost&) {
    // The first process has gone; what it measured is in its file.
  }
  return true;
}

bool Crew::broken() const { return lost_ || member_->broken(); }

double Crew::now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace weft
