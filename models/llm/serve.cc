// SPDX-License-Identifier: Apache-2.0
#include "models/llm/serve.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/core/diagnostics.hpp"
#include "sim/core/seconds.hpp"

namespace weft {
namespace {

constexpr std::int64_t kMostIterations = 2'000'000;
constexpr std::int64_t kProgressEvery = 1 << 10;
constexpr double kMostTokens = 5e8;         // written one by one
constexpr double kMostSeconds = 2'592'000;  // 30 days, as everything in a scenario

struct Request {
  ServeRequest wanted;
  std::int64_t reading = 0;  // tokens that have to be in the cache before the next one is made
  std::int64_t context = 0;  // tokens in the cache
  std::int64_t generated = 0;
  std::int64_t pages = 0;
  std::size_t to = 0;  // replica that answers
  double ready = 0;    // when it can be in an iteration again
  bool swapped = false, gone = false;
  std::int64_t writes = -1;  // the last iteration that gave it a token
  bool decoding() const { return context >= reading; }
};

class Server {
 public:
  Server(const RequestsSpec& spec, const ServingSpec& serving, const ServeShape& shape,
         const ServeCosts& costs, std::uint64_t seed)
      : spec_(spec), serving_(serving), shape_(shape), costs_(costs) {
    std::int64_t shared = 0;  // one copy of what prompts have in common
    for (const ServeRequest& wanted : make_requests(spec, serving.block, seed)) {
      shared = std::max(shared, wanted.cached);
      requests_.push_back({.wanted = wanted});
      result_.requests.push_back({.prompt = wanted.prompt, .output = wanted.output});
    }
    pages_ = (shape.cache_tokens - shared) / serving.block;
    refuse_too_much();
    replicas_.resize(static_cast<std::size_t>(shape.replicas));
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      replicas_[r].free = pages_;
      pool(r).emplace(0, r);
    }
    const std::int64_t together = std::max<std::int64_t>(1, shape.lockstep);
    groups_.resize(static_cast<std::size_t>((shape.replicas + together - 1) / together));
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      replicas_[r].group = r / static_cast<std::size_t>(together);
      groups_[replicas_[r].group].members.push_back(r);
    }
    for (Group& group : groups_)
      group.stage_free.assign(static_cast<std::size_t>(shape.stages), 0.0);
    result_.sum.stages.assign(static_cast<std::size_t>(shape.stages), 0.0);
  }

  ServeResult run() {
    const std::size_t first =
        spec_.trace.empty() && spec_.arrival == Arrival::closed
            ? std::min(requests_.size(), static_cast<std::size_t>(spec_.concurrency))
            : requests_.size();
    for (; asked_ < first; ++asked_)
      push({requests_[asked_].wanted.arrival, Event::Kind::arrival, asked_, 0});
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      if (event.kind == Event::Kind::arrival) arrive(event.id);
      if (event.kind == Event::Kind::done) finish(event.id, event.replica);
      if (event.kind == Event::Kind::read) send(event.id, event.replica);
      if (event.kind == Event::Kind::moved) receive(event.id, event.replica);
      if (event.kind == Event::Kind::step) step(event.id);
    }
    if (answering_ > 0) result_.mean_batch /= static_cast<double>(answering_);
    return std::move(result_);
  }

 private:
  struct Event {
    // In the order in which events of one instant count.
    enum class Kind : std::uint8_t { done, read, moved, arrival, step };
    double time = 0;
    Kind kind = Kind::arrival;
    std::size_t id = 0, replica = 0;  // request, or group of a step
    std::uint64_t sequence = 0;
    bool operator<(const Event& other) const {  // the queue's top is the greatest
      if (time != other.time) return time > other.time;
      if (kind != other.kind) return kind > other.kind;
      return sequence > other.sequence;
    }
  };
  struct Replica {
    std::size_t group = 0;
    std::deque<std::size_t> waiting;
    std::vector<std::size_t> running;  // oldest first
    std::int64_t free = 0, load = 0;
    double link_free = 0;
    bool leaves = false;
  };
  struct Group {
    std::vector<std::size_t> members;
    std::vector<double> stage_free;  // when each stage has done its last iteration
    double wake = HUGE_VAL;          // the next step that is planned
  };
  // What a replica does in an iteration.
  struct Work {
    Iteration size;
    std::vector<std::pair<std::size_t, std::int64_t>> pieces;  // of prompts, tokens
    std::vector<std::size_t> decodes;
    double swap = 0;
  };

  // In the cache before the next token can be made.
  std::int64_t to_read(const Request& r) const {
    return r.wanted.prompt + r.generated + (shape_.encodes ? 1 : 0);
  }
  // In an empty cache.
  bool fits(const Request& r) const {
    return pages_of(r, r.wanted.prompt + r.wanted.output) <= pages_;
  }
  // An iteration gives a request one token at most, and so many requests one each.
  void refuse_too_much() const {
    double tokens = 0, longest = 0;
    for (const Request& r : requests_) {
      if (!fits(r)) continue;
      tokens += static_cast<double>(r.wanted.output);
      longest = std::max(longest, static_cast<double>(r.wanted.output));
    }
    const double together =
        static_cast<double>(serving_.max_batch) * static_cast<double>(shape_.replicas);
    const double iterations = std::max(longest, tokens / together);
    if (iterations > static_cast<double>(kMostIterations)) {
      throw LimitReached(
          fmt::format("answers of {:.4g} tokens, the longest of {:.4g}, take {:.4g} iterations of "
                      "the engine or more, and {} is the most: ask for fewer or shorter ones in "
                      "/requests",
                      tokens, longest, iterations, kMostIterations));
    }
    if (tokens > kMostTokens) {
      throw LimitReached(fmt::format(
          "answers of {:.4g} tokens, and {:.0e} is the most: ask for fewer or shorter ones in "
          "/requests",
          tokens, kMostTokens));
    }
  }

  void push(Event event) {
    event.sequence = ++sequence_;
    events_.push(event);
  }
  void wake(std::size_t group, double time) {
    if (groups_[group].wake <= time) return;
    groups_[group].wake = time;
    push({time, Event::Kind::step, group, 0});
  }
  std::int64_t pages_for(std::int64_t tokens) const {
    return (tokens + serving_.block - 1) / serving_.block;
  }
  // Of a request: what it shares with others is not its own.
  std::int64_t pages_of(const Request& r, std::int64_t tokens) const {
    return pages_for(std::max<std::int64_t>(0, tokens - r.wanted.cached));
  }
  bool prefills(std::size_t replica) const {
    return static_cast<std::int64_t>(replica) < shape_.prefill_replicas;
  }
  // Those that take new requests, and those that answer what others have read; by load.
  using Pool = std::set<std::pair<std::int64_t, std::size_t>>;
  Pool& pool(std::size_t replica) {
    return prefills(replica) || shape_.prefill_replicas == 0 ? entry_ : answer_;
  }
  void add_load(std::size_t replica, std::int64_t more) {
    Pool& of = pool(replica);
    std::int64_t& load = replicas_[replica].load;
    of.erase({load, replica});
    load += more;
    of.emplace(load, replica);
  }

  // ---- requests between replicas

  void arrive(std::size_t id) {
    Request& r = requests_[id];
    RequestTimes& times = result_.requests[id];
    times.arrival = now_;
    if (!fits(r)) {
      times.refused = true;
      return ask_again(now_);
    }
    r.reading = to_read(r);
    r.context = r.wanted.cached;
    join(id, entry_.begin()->second);
  }
  void join(std::size_t id, std::size_t replica) {
    replicas_[replica].waiting.push_back(id);
    add_load(replica, 1);
    requests_[id].ready = now_;
    wake(replicas_[replica].group, std::max(now_, groups_[replicas_[replica].group].stage_free[0]));
  }
  void leave(std::size_t id, std::size_t replica) {
    Replica& home = replicas_[replica];
    home.free += std::exchange(requests_[id].pages, 0);
    add_load(replica, -1);
    requests_[id].gone = true;  // from `running` with the next iteration
    home.leaves = true;
    wake(home.group, std::max(now_, groups_[home.group].stage_free[0]));
  }
  void finish(std::size_t id, std::size_t replica) {
    leave(id, replica);
    result_.requests[id].finish = now_;
    result_.makespan = std::max(result_.makespan, now_);
    ask_again(now_);
  }
  // The prompt has been read; its cache travels, one after the other from one replica, then its pages are free there.
  void send(std::size_t id, std::size_t from) {
    Request& r = requests_[id];
    r.to = answer_.begin()->second;
    add_load(r.to, 1);
    const double took =
        costs_.transfer(static_cast<std::int64_t>(from), static_cast<std::int64_t>(r.to),
                        static_cast<double>(r.context));
    Replica& home = replicas_[from];
    home.link_free = std::max(now_, home.link_free) + took;
    result_.transfer += took;
    r.ready = HUGE_VAL;
    push({home.link_free, Event::Kind::moved, id, from});
  }
  void receive(std::size_t id, std::size_t from) {
    leave(id, from);
    std::erase(replicas_[from].running, id);
    add_load(requests_[id].to, -1);
    requests_[id].gone = false;
    join(id, requests_[id].to);
  }
  void ask_again(double time) {
    if (!spec_.trace.empty() || spec_.arrival != Arrival::closed || asked_ >= requests_.size())
      return;
    push({time, Event::Kind::arrival, asked_++, 0});
  }

  // ---- one iteration

  // The youngest that is not under way gives up its pages.
  void preempt(std::size_t replica, Work& work) {
    Replica& home = replicas_[replica];
    for (std::size_t i = home.running.size(); i-- > 0;) {
      const std::size_t id = home.running[i];
      Request& r = requests_[id];
      if (r.ready > now_ || r.pages == 0) continue;
      if (r.writes == result_.iterations) continue;
      home.free += std::exchange(r.pages, 0);
      ++result_.preemptions;
      if (serving_.preemption == Preemption::swap && r.decoding()) {
        r.swapped = true;
        work.swap += costs_.swap(static_cast<double>(r.context));
      } else {
        r.reading = to_read(r);
        r.context = r.wanted.cached;
      }
      home.running.erase(home.running.begin() + static_cast<std::ptrdiff_t>(i));
      home.waiting.push_front(id);
      return;
    }
  }
  bool take_pages(std::size_t replica, Request& r, std::int64_t tokens) {
    const std::int64_t more = pages_of(r, tokens) - r.pages;
    if (more > replicas_[replica].free) return false;
    if (more > 0) {
      r.pages += more;
      replicas_[replica].free -= more;
    }
    return true;
  }
  void add_decodes(std::size_t replica, Work& work) {
    Replica& home = replicas_[replica];
    std::int64_t answering = 0;
    for (const std::size_t id : home.running) answering += requests_[id].decoding() ? 1 : 0;
    const auto most = static_cast<std::size_t>((answering + shape_.stages - 1) / shape_.stages);
    const std::vector<std::size_t> candidates = home.running;
    for (const std::size_t id : candidates) {
      Request& r = requests_[id];
      if (work.decodes.size() >= most) break;
      if (!r.decoding() || r.ready > now_ || r.pages == 0) continue;
      while (!take_pages(replica, r, r.context + 1) && r.pages > 0) {
        const std::size_t before = home.running.size();
        preempt(replica, work);
        if (home.running.size() == before) break;
      }
      if (r.pages == 0 || pages_of(r, r.context + 1) > r.pages) continue;
      r.writes = result_.iterations;
      work.decodes.push_back(id);
      work.size.decodes += 1;
      work.size.decode_context += static_cast<double>(r.context);
      if (shape_.encodes) work.size.decode_prompts += static_cast<double>(r.wanted.prompt);
    }
  }
  void add_piece(Work& work, std::size_t id, std::int64_t tokens) {
    const Request& r = requests_[id];
    const auto own = static_cast<double>(shape_.encodes ? tokens - r.wanted.prompt : 0);
    const double t = static_cast<double>(tokens) - own, before = static_cast<double>(r.context);
    work.pieces.emplace_back(id, tokens);
    work.size.prompts += 1;
    work.size.started += own;
    work.size.started_context += own * (own - 1) / 2;
    work.size.prompt_tokens += t;
    work.size.prompt_context += t * before + t * (t - 1) / 2;
    if (r.context + tokens >= r.reading) work.size.first_tokens += 1;
  }
  // From the front of the queue while there is room.
  std::optional<std::size_t> admit(std::size_t replica, Work& work) {
    Replica& home = replicas_[replica];
    if (home.waiting.empty() || std::ssize(home.running) >= serving_.max_batch) return std::nullopt;
    const std::size_t id = home.waiting.front();
    Request& r = requests_[id];
    if (r.ready > now_) return std::nullopt;
    const std::int64_t tokens =
        std::min(std::max(r.reading, r.context) + 1, r.wanted.prompt + r.wanted.output);
    if (!take_pages(replica, r, tokens)) return std::nullopt;
    home.waiting.pop_front();
    home.running.push_back(id);
    if (std::exchange(r.swapped, false)) work.swap += costs_.swap(static_cast<double>(r.context));
    return id;
  }
  void add_prompts(std::size_t replica, Work& work) {
    Replica& home = replicas_[replica];
    const bool chunked = serving_.chunk.has_value();
    std::int64_t room =
        chunked ? *serving_.chunk - static_cast<std::int64_t>(work.size.decodes) : kWholePrompts;
    const auto read = [&](std::size_t id) {
      const Request& r = requests_[id];
      const std::int64_t left = r.reading - r.context;
      if (left <= 0) return;
      if (!chunked && left > room && !work.pieces.empty()) return;
      const std::int64_t tokens = chunked ? std::min(left, room) : left;
      add_piece(work, id, tokens);
      room -= tokens;
    };
    for (const std::size_t id : home.running) {
      if (room <= 0) break;
      if (requests_[id].ready <= now_) read(id);
    }
    while (room > 0) {
      const auto id = admit(replica, work);
      if (!id) break;
      read(*id);
    }
  }
  Work plan(std::size_t replica) {
    Work work;
    Replica& home = replicas_[replica];
    if (std::exchange(home.leaves, false))
      std::erase_if(home.running, [&](std::size_t id) { return requests_[id].gone; });
    if (serving_.chunk) {
      // Those whose cache is there already, from another replica or from the host.
      const auto& waiting = home.waiting;
      while (!waiting.empty() && requests_[waiting.front()].decoding()) {
        if (!admit(replica, work)) break;
      }
      add_decodes(replica, work);
      add_prompts(replica, work);
    } else {
      add_prompts(replica, work);
      if (work.pieces.empty()) add_decodes(replica, work);
    }
    return work;
  }

  void step(std::size_t g) {
    Group& group = groups_[g];
    if (now_ != group.wake) return;  // another came before it
    group.wake = HUGE_VAL;
    std::vector<Work> works;
    Iteration most;
    double swap = 0, slowness = 1;
    bool any = false;
    for (const std::size_t replica : group.members) {
      const Work& work = works.emplace_back(plan(replica));
      const Iteration& size = work.size;
      any = any || size.prompts > 0 || size.decodes > 0;
      most.cover(size);
      swap = std::max(swap, work.swap);
      if (!costs_.slowness.empty()) slowness = std::max(slowness, costs_.slowness[replica]);
    }
    if (!any) return sleep(g);
    if (++result_.iterations > kMostIterations)
      throw LimitReached(fmt::format("more than {} iterations of the engine", kMostIterations));
    if (costs_.progress && result_.iterations % kProgressEvery == 0)
      costs_.progress(time_from_seconds(now_), static_cast<std::uint64_t>(result_.iterations));
    written_ += most.decodes;
    if (written_ > kMostTokens)
      throw LimitReached(fmt::format("more than {:.0e} tokens of answers", kMostTokens));
    const double end = advance(group, most, swap, slowness);
    for (std::size_t i = 0; i < works.size(); ++i) apply(group.members[i], works[i], end);
    wake(g, group.stage_free[0]);
  }

  // Through the stages, each behind its own iteration before.
  double advance(Group& group, const Iteration& size, double swap, double slowness) {
    const IterationTime took = costs_.iteration(size);
    WEFT_CHECK(took.stages.size() == group.stage_free.size(), took.stages.size());
    const double share = took.total() > 0 ? took.compute / took.total() * (slowness - 1) + 1 : 1;
    const double overhead = serving_.overhead.seconds() +
                            serving_.request_overhead.seconds() * (size.prompts + size.decodes);
    double at = now_ + swap;
    for (std::size_t s = 0; s < took.stages.size(); ++s) {
      at = std::max(at, group.stage_free[s]) + took.stages[s] * share +
           overhead / static_cast<double>(took.stages.size());
      group.stage_free[s] = at;
      result_.sum.stages[s] += took.stages[s] * share;
    }
    result_.sum.compute += took.compute * slowness;
    result_.sum.tp += took.tp;
    result_.sum.ep += took.ep;
    result_.sum.pp += took.pp;
    if (!(at <= kMostSeconds)) throw LimitReached("answers take more than 30 days");
    return at;
  }

  void apply(std::size_t replica, const Work& work, double end) {
    Replica& home = replicas_[replica];
    const auto batch = static_cast<std::int64_t>(work.decodes.size());
    if (batch > 0) {
      ++answering_;
      result_.mean_batch += static_cast<double>(batch);
      result_.peak_batch = std::max(result_.peak_batch, batch);
    }
    result_.peak_cache_tokens = std::max(
        result_.peak_cache_tokens, static_cast<double>((pages_ - home.free) * serving_.block));
    for (const auto& [id, tokens] : work.pieces) {
      Request& r = requests_[id];
      r.context += tokens;
      if (r.decoding()) {
        emit(id, replica, end);
      } else {
        r.ready = groups_[home.group].stage_free[0];
      }
    }
    for (const std::size_t id : work.decodes) {
      ++requests_[id].context;
      requests_[id].reading = requests_[id].context;
      emit(id, replica, end);
    }
  }
  // A token comes out at `end`.
  void emit(std::size_t id, std::size_t replica, double end) {
    Request& r = requests_[id];
    r.ready = end;
    if (++r.generated == 1) result_.requests[id].first_token = end;
    if (r.generated >= r.wanted.output) {
      r.ready = HUGE_VAL;
      push({end, Event::Kind::done, id, replica});
    } else if (prefills(replica)) {
      push({end, Event::Kind::read, id, replica});
    }
  }

  // Until something of the group is ready; what comes from outside wakes it too.
  void sleep(std::size_t g) {
    double next = HUGE_VAL;
    for (const std::size_t replica : groups_[g].members) {
      for (const std::size_t id : replicas_[replica].running) {
        if (requests_[id].ready > now_) next = std::min(next, requests_[id].ready);
      }
    }
    if (next < HUGE_VAL) wake(g, next);
  }

  const RequestsSpec& spec_;
  const ServingSpec& serving_;
  const ServeShape& shape_;
  const ServeCosts& costs_;
  std::int64_t pages_ = 0, answering_ = 0;
  std::vector<Request> requests_;
  std::vector<Replica> replicas_;
  std::vector<Group> groups_;
  std::priority_queue<Event> events_;
  std::uint64_t sequence_ = 0;
  std::size_t asked_ = 0;
  Pool entry_, answer_;
  double now_ = 0, written_ = 0;
  ServeResult result_;
};

}  // namespace

ServeResult serve(const RequestsSpec& spec, const ServingSpec& serving, const ServeShape& shape,
                  const ServeCosts& costs, std::uint64_t seed) {
  return Server(spec, serving, shape, costs, seed).run();
}

}  // namespace weft
