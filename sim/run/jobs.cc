// SPDX-License-Identifier: Apache-2.0
#include "sim/run/jobs.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/core/hash.hpp"
#include "sim/core/text.hpp"
#include "sim/run/packet_check.hpp"

namespace weft {
void JobBuilder::build() {
  plan();
  out_.throw_if_errors();
  plan_reroutes();
  out_.throw_if_errors();
}

void JobBuilder::plan() {
  check_library();
  check_packet_level(fabric_, scenario_, out_);
  out_.throw_if_errors();
  apply_faults();
  Placement placement(fabric_, static_cast<std::uint64_t>(scenario_.seed));
  for (const JobSpec& spec : scenario_.jobs) add_job(spec, placement);
  if (out_.ok()) append_modelled();
  bool endless_only = true;
  for (const JobPlan& job : jobs_) endless_only = endless_only && job.run.until_end;
  if (endless_only && out_.ok()) {
    out_.error(scenario_.jobs.front().place, scenario_.jobs.front().pointer + "/repeat",
               "every job repeats until the end, so there is no end",
               "give one job a number of iterations");
  }
}

// ---- faults

std::vector<LinkId> JobBuilder::links_of(const FaultSpec& fault) {
  std::vector<LinkId> links;
  if (const auto node = fabric_.find_node(fault.target)) {
    for (const LinkId l : fabric_.out_links(*node)) {
      links.push_back(l);
      links.push_back(fabric_.link(l).reverse);
    }
  } else if (const auto link = fabric_.find_link(fault.target)) {
    links = {*link, fabric_.link(*link).reverse};
  } else {
    error(fault.place, fault.pointer + "/target",
          fmt::format("\"{}\" is not a node or a link of the fabric", fault.target),
          "see `weft topo FABRIC --names '*'`");
  }
  return links;
}

// Jobs of models look these up themselves.
void JobBuilder::check_slow(const FaultSpec& fault) {
  const auto node = fabric_.find_node(fault.target);
  if (!node || fabric_.node(*node).kind != NodeKind::gpu) {
    error(fault.place, fault.pointer + "/target",
          fmt::format("\"{}\" is not a GPU of the fabric", fault.target),
          "only GPUs compute; see `weft topo FABRIC --names '*gpu*'`");
  }
  if (fault.factor <= 0)
    error(fault.place, fault.pointer + "/factor", "nothing is left", "give a share above 0");
  if (fault.at.ps > 0 || fault.until) {
    error(fault.place, fault.pointer, "not yet: a GPU that is slow for a part of the run",
          "leave \"at\" and \"until\" out");
  }
}

void JobBuilder::apply_faults() {
  struct Spell {
    Time from, until;
    double left;  // share of the capacity
  };
  std::map<LinkId, std::vector<Spell>> spells;
  for (const FaultSpec& fault : scenario_.faults) {
    if (fault.action == FaultAction::slow) {
      check_slow(fault);
      continue;
    }
    const bool down = fault.action == FaultAction::down;
    if (!down && fault.factor <= 0) {
      error(fault.place, fault.pointer + "/factor", "nothing is left", "use \"do\": \"down\"");
      continue;
    }
    for (const LinkId l : links_of(fault)) {
      const Tier tier = fabric_.link(l).tier;
      const bool inside = tier == Tier::scale_up || tier == Tier::host;
      if (fault.reroutes() && (!down || inside)) {
        error(fault.place, fault.pointer,
              "\"detect\" and \"reroute\" are of network links that are down", "leave them out");
        break;
      }
      if (down && !fault.until && !fault.reroutes()) {
        if (fault.at.ps > 0 || inside) {
          error(fault.place, fault.pointer,
                inside ? fmt::format("not yet: losing {} for good, a link inside a server",
                                     fabric_.name(l))
                       : "not yet: losing a link for good while the run goes on",
                inside ? "name the network link instead (`weft topo FABRIC --names '*nic*'`), give "
                         "\"until\", or degrade the link"
                       : "give \"detect\" and \"reroute\", put the fault at 0 s, give \"until\", "
                         "or degrade the link");
          break;
        }
        routes_.network().set_down(l, true);
        continue;
      }
      spells[l].push_back({fault.at, fault.until.value_or(Time::never()), down ? 0 : fault.factor});
    }
  }
  // Where faults of one link overlap, what is left is the product.
  for (const auto& [link, faults] : spells) {
    std::vector<Time> turns;
    for (const Spell& spell : faults) {
      turns.push_back(spell.from);
      if (spell.until < Time::never()) turns.push_back(spell.until);
    }
    std::ranges::sort(turns);
    turns.erase(std::unique(turns.begin(), turns.end()), turns.end());
    for (const Time turn : turns) {
      double left = 1;
      for (const Spell& spell : faults) {
        if (spell.from <= turn && turn < spell.until) left *= spell.left;
      }
      changes_.push_back({turn, link.v, scaled(fabric_.link(link).rate, left)});
    }
  }
}

void JobBuilder::add_job(const JobSpec& spec, Placement& placement) {
  JobPlan& job = jobs_.emplace_back();
  job.spec = &spec;
  job.run.start = spec.start;
  job.run.first_op = static_cast<std::uint32_t>(workload_.operations.size());
  if (spec.repeat.kind == Json::Kind::integer)
    job.run.iterations = static_cast<std::uint32_t>(spec.repeat.integer);
  job.run.until_end = spec.repeat.is_string();
  job.run.traffic_class = static_cast<std::uint8_t>(spec.traffic_class);
  label_ = static_cast<std::uint32_t>(workload_.labels.size());
  workload_.labels.push_back(spec.name);
  if (spec.collective) add_collective(spec, job, placement);
  if (spec.p2p) add_p2p(spec, job);
  if (!spec.flows.empty()) add_flows(spec, job);
  if (spec.pattern) add_pattern(spec, job, placement);
  if (spec.kind == JobKind::training || spec.kind == JobKind::inference)
    add_modelled(spec, job, placement);
  job.run.end_op = static_cast<std::uint32_t>(workload_.operations.size());
}

std::optional<std::vector<NodeId>> JobBuilder::take_gpus(const JobSpec& spec,
                                                         Placement& placement) {
  const auto& limit = spec.placement.gpus_per_server;
  const std::size_t per_server = limit ? static_cast<std::size_t>(*limit) : Placement::kAllOfServer;
  const auto wanted = spec.gpus ? static_cast<std::size_t>(*spec.gpus) : placement.free(per_server);
  auto gpus = placement.take(wanted, spec.placement.policy, jobs_.size(), per_server);
  if (!gpus || gpus->empty()) {
    error(spec.place, spec.pointer + "/gpus",
          fmt::format("{} GPUs are wanted, {} of {} are free", wanted, placement.free(per_server),
                      fabric_.gpus().size()),
          "ask for fewer, or enlarge /fabric");
    return std::nullopt;
  }
  return gpus;
}

const AlgorithmEntry* JobBuilder::find_algorithm(const JobSpec& spec, const GroupShape& shape) {
  const std::string name =
      spec.algorithm.empty() ? default_algorithm(*spec.collective, shape) : spec.algorithm;
  std::vector<std::string> names;
  for (const AlgorithmEntry* entry : algorithms_) {
    if (entry->name == name) {
      if (entry->supports(*spec.collective, shape)) return entry;
      error(
          spec.place, spec.pointer + "/algorithm",
          fmt::format("{} cannot do {} over this group", name, write_config(*spec.collective).text),
          "leave \"algorithm\" out to let weft choose");
      return nullptr;
    }
    names.emplace_back(entry->name);
  }
  error(spec.place, spec.pointer + "/algorithm",
        fmt::format("\"{}\" is not an algorithm{}", name, did_you_mean(name, names)),
        "one of " + join(names, ", "));
  return nullptr;
}

void JobBuilder::add_collective(const JobSpec& spec, JobPlan& job, Placement& placement) {
  const auto gpus = take_gpus(spec, placement);
  if (!gpus) return;
  const std::size_t size =
      spec.group_size ? static_cast<std::size_t>(*spec.group_size) : gpus->size();
  const std::size_t stride = spec.group_size ? static_cast<std::size_t>(spec.group_stride) : 1;
  if (gpus->size() % (size * stride) != 0) {
    error(spec.place, spec.pointer + "/group_size",
          fmt::format("{} GPUs cannot be split into groups of {} with stride {}", gpus->size(),
                      size, stride),
          "group_size x group_stride must divide the number of GPUs");
    return;
  }
  if (static_cast<std::size_t>(spec.root) >= size) {
    error(spec.place, spec.pointer + "/root",
          fmt::format("there is no rank {} in a group of {}", spec.root, size),
          fmt::format("ranks count from 0 to {}", size - 1));
    return;
  }
  job.ranks = size;
  job.bytes = spec.size->value();
  for (std::size_t block = 0; block < gpus->size(); block += size * stride) {
    for (std::size_t offset = 0; offset < stride; ++offset) {
      GroupPlan& group = job.groups.emplace_back();
      for (std::size_t k = 0; k < size; ++k)
        group.gpus.push_back((*gpus)[block + offset + k * stride]);
      if (!add_group(spec, job, group)) return;
    }
  }
  if (size == 1) job.notes.push_back("a group of one: no traffic");
}

void JobBuilder::check_library() {
  if (!scenario_.nccl) return;
  if (!library_) {
    return error(scenario_.nccl->place, scenario_.nccl->pointer, "this caller has no model of NCCL",
                 "leave \"nccl\" out");
  }
  library_.check(*scenario_.nccl, out_);
  out_.throw_if_errors();
}

void JobBuilder::add_modelled(const JobSpec& spec, JobPlan& job, Placement& placement) {
  const auto& build = spec.kind == JobKind::training ? models_.training : models_.inference;
  if (!build) {
    return error(spec.place, spec.pointer + "/kind", "this caller has no model of such a job",
                 "use a collective, p2p, flows or a pattern");
  }
  const auto gpus = take_gpus(spec, placement);
  if (!gpus) return;
  job.ranks = gpus->size();
  job.modelled_on = *gpus;
  job.modelled = build({fabric_, routes_, lockstep_, workload_, scenario_, spec, *gpus,
                        [this](JobSite::Timing timing) { return make_timer(timing); }, progress_},
                       out_);
}

std::unique_ptr<CollectiveTimer> JobBuilder::make_timer(JobSite::Timing timing) {
  static const CollectiveLibrary none;
  NcclSpec nccl;
  if (timing == JobSite::Timing::graphs) nccl.harness = "graph";
  return std::make_unique<CollectiveTimer>(
      fabric_, routes_,
      collective_planner(planned_on_, scenario_, algorithms_,
                         timing == JobSite::Timing::bare ? none : library_, nccl),
      make_network_);
}

// Behind all other jobs: folding needs to know every flow that there will be.
void JobBuilder::append_modelled() {
  const auto modelled = [](const JobPlan& job) { return job.modelled != nullptr; };
  if (std::ranges::none_of(jobs_, modelled)) return;
  std::vector<std::uint32_t> changing;
  for (const ScheduledChange& change : changes_) changing.push_back(change.resource);
  const std::vector<Bandwidth> capacities = fabric_.capacities();
  lockstep_.fold(capacities, changing);
  for (JobPlan& job : jobs_) {
    if (!modelled(job)) continue;
    job.run.first_op = static_cast<std::uint32_t>(workload_.operations.size());
    job.modelled->append(workload_, lockstep_, workload_.add_barrier());
    job.run.end_op = static_cast<std::uint32_t>(workload_.operations.size());
  }
}

bool JobBuilder::add_planned_group(const JobSpec& spec, JobPlan& job, GroupPlan& group) {
  PlannedCollective planned;
  try {
    planned = library_.join(planned_on_, group.gpus, *scenario_.nccl)
                  ->plan(*spec.collective, *spec.size, static_cast<std::uint32_t>(spec.root));
  } catch (const InputError& problem) {
    // "error: FACT\n    CURE\n": said again at the place of the job.
    std::string_view text = problem.what();
    if (text.starts_with("error: ")) text.remove_prefix(7);
    while (text.ends_with('\n')) text.remove_suffix(1);
    const std::size_t end = text.find("\n    ");
    error(spec.place, spec.pointer, std::string(text.substr(0, end)),
          end == text.npos ? "" : std::string(text.substr(end + 5)));
    return false;
  }
  job.algorithm = std::move(planned.algorithm);
  job.channels = planned.channels;
  for (std::string& note : planned.notes) {
    if (std::ranges::find(job.notes, note) == job.notes.end()) job.notes.push_back(std::move(note));
  }
  planned.options.hash =
      mix64(static_cast<std::uint64_t>(scenario_.seed) ^ mix64(group.gpus.front().v));
  planned.options.label = label_;
  planned.options.packets = scenario_.fidelity == Fidelity::packet;
  group.first = workload_.add_barrier();
  group.last = builder_.append(planned.schedule, group.gpus, planned.options, group.first);
  return true;
}

bool JobBuilder::add_group(const JobSpec& spec, JobPlan& job, GroupPlan& group) {
  if (scenario_.nccl && spec.algorithm.empty()) return add_planned_group(spec, job, group);
  const GroupShape shape = group_shape(routes_, group.gpus);
  const AlgorithmEntry* algorithm = find_algorithm(spec, shape);
  if (algorithm == nullptr) return false;
  CollectiveRequest request;
  request.kind = *spec.collective;
  request.size = *spec.size;
  request.root = static_cast<std::uint32_t>(spec.root);
  request.channels = static_cast<std::uint32_t>(spec.channels.value_or(
      static_cast<std::int64_t>(std::clamp<std::size_t>(shape.orders.size(), 1, 64))));
  request.chunk = spec.chunk.value_or(Bytes{0});
  PlannedCollective planned = plan_own(*algorithm, shape, request, scenario_, fabric_.routing());
  planned.options.hash =
      mix64(static_cast<std::uint64_t>(scenario_.seed) ^ mix64(group.gpus.front().v));
  if (in_switches(planned.schedule) && !take_contexts(group, planned.options, job)) {
    const auto ring = std::ranges::find(algorithms_, "ring", &AlgorithmEntry::name);
    WEFT_CHECK(ring != algorithms_.end(), algorithms_.size());
    const std::uint64_t hash = planned.options.hash;
    planned = plan_own(**ring, shape, request, scenario_, fabric_.routing());
    planned.options.hash = hash;
  }
  const Schedule& schedule = planned.schedule;
  job.algorithm = planned.algorithm;
  job.channels = planned.channels;
  const Bandwidth limit =
      in_switches(schedule) ? schedule.phases.front().channels.front().cap : Bandwidth{0};
  if (limit.bps > 0 && job.groups.size() == 1) {
    job.notes.push_back(
        fmt::format("the switches reduce at most {} per GPU", to_text_bytes(limit)));
  }
  CollectiveOptions& options = planned.options;
  options.expand = options.expand || spec.expand;
  options.label = label_;
  group.first = workload_.add_barrier();
  group.last = builder_.append(schedule, group.gpus, options, group.first);
  return true;
}

std::optional<NodeId> JobBuilder::find_gpu(const std::string& name, const Place& place,
                                           const std::string& pointer) {
  const auto node = fabric_.find_node(name);
  if (node && fabric_.node(*node).kind == NodeKind::gpu) return node;
  error(place, pointer, fmt::format("\"{}\" is not a GPU of the fabric", name),
        fmt::format("GPUs are named {} ... {}", fabric_.name(fabric_.gpus().front()),
                    fabric_.name(fabric_.gpus().back())));
  return std::nullopt;
}

}  // namespace weft
