// SPDX-License-Identifier: Apache-2.0
// weft plan: the fastest ways to spread a model over GPUs. To train, every legal plan that fits the memory is estimated, the best
// are simulated at fluid level and ordered by that. To answer: see plan_inference.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "models/catalog.hpp"
#include "models/llm/fabric_times.hpp"
#include "models/llm/flops.hpp"
#include "models/llm/host.hpp"
#include "models/llm/search.hpp"
#include "models/nccl/library.hpp"
#include "sim/core/loader.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/output.hpp"
#include "tools/cli/plan_inference.hpp"
#include "tools/cli/plan_output.hpp"
#include "tools/cli/simulate.hpp"

namespace weft {
namespace {

constexpr std::int64_t kDefaultSeq = 4096, kDefaultTokens = std::int64_t{4} << 20;
// assumed: clients that keep a replica busy, prompts and answers of a chat
constexpr std::int64_t kClientsPerGpu = 16, kPrompt = 1024, kAnswer = 256;
constexpr std::int64_t kFewGpus = 1024;  // up to here a simulated step costs little
constexpr double kNear =
    1.3;  // times the best estimate: estimates of a kind of plans are off by as much

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class PlanCommand final : public Command {
 public:
  void add(CLI::App& app) override {
    app.add_option("--llm", llm_, "a language model, or a config.json")->required();
    app.add_option("--fabric", fabric_, "a fabric or server; servers are added up to --gpus")
        ->required();
    app.add_option("--gpus", gpus_, "number of GPUs")->required()->check(CLI::Range(1, 10'000'000));
    app.add_option("--global-batch", batch_,
                   "sequences per step; default: about 4 Mi tokens, a multiple of the GPUs' power "
                   "of two")
        ->check(CLI::Range(1, 1'000'000'000));
    app.add_option("--seq", seq_, "tokens of a sequence; default 4096, or what the model takes")
        ->check(CLI::Range(1, 1'000'000'000));
    app.add_option(
           "--mode", mode_,
           "training, or inference under a load that --job changes: 16 clients per GPU, prompts of "
           "1024 tokens, answers of 256")
        ->check(CLI::IsMember({"training", "inference"}));
    app.add_option("--top", top_, "plans to show, default 5")->check(CLI::Range(1, 1'000'000));
    add_settings_option(app, {"--fix", "KEY=VALUE", "tp=8"}, fixed_,
                        "a key of the plan that is not searched: tp=8, recompute=full");
    add_settings_option(app, {"--job", "PTR=VALUE", "/dtype/compute=fp8"}, job_sets_,
                        "another key of the job: /dtype/compute=fp8, /requests/concurrency=64");
    app.add_flag("--tp-across-servers", tp_across_, "tensor parallel groups may leave a server");
    app.add_option(
           "--simulate", simulate_,
           "plans to check at fluid level; default 8 and the best of each schedule with each "
           "sharding, none beyond 1024 GPUs")
        ->check(CLI::Range(0, 1'000'000));
    app.add_option("--scenario", scenario_, "write a scenario of the best plan, for `weft run`");
    add_set_option(app, sets_);
    add_json_flag(app, json_);
  }

  int run(Io& io) override {
    const double start = now_s();
    Diagnostics diagnostics;
    check_options(diagnostics);
    diagnostics.throw_if_errors();
    expect_writable(scenario_);
    const LoadedFabric loaded = load(diagnostics);
    const Fabric& fabric = loaded.fabric;
    Configs files(find_configs_root());
    Loader loader(files, diagnostics);
    Scenario scenario = read(loader, loaded.document, diagnostics);
    if (answers()) return serve(io, fabric, std::move(scenario), diagnostics);
    TrainingSpec& training = *scenario.jobs.front().training;

    Placement placement(fabric, 1);
    const auto gpus = placement.take(static_cast<std::size_t>(gpus_), PlacementPolicy::packed, 0);
    const GpuSpec& gpu = fabric.gpu_spec(gpus->front());
    training.host = host_facts(fabric, *gpus);
    check_host(training, diagnostics);
    check_kernels(gpu, training.software, training.dtype, {}, "/job", diagnostics);
    diagnostics.throw_if_errors();
    io.err << diagnostics.text();

    const Architecture model(training.model);
    const KernelTimes kernels(gpu, training.software);
    Progress progress(io.err);
    RunContext context = run_context(progress);
    context.explain = false;
    context.library = remembering(context.library, fabric);
    Routes routes(fabric);
    CollectiveTimer timer(fabric, routes,
                          collective_planner(fabric, scenario, context.algorithms, context.library),
                          [&](std::span<const Bandwidth> capacities) {
                            return context.make_network(Fidelity::fluid, capacities, {});
                          });
    FabricTimes times(fabric, timer, *gpus);
    const SearchLimits limits = search_limits(gpu, training, progress);
    const SearchResult found = search_plans(model, training, kernels, times, limits);
    const double searched = now_s() - start;

    const bool experts = training.model.experts.has_value();
    if (found.best.empty()) return nothing_fits(io, found, model, training, limits);
    std::vector<RankedPlan> rows =
        simulate(found, fabric, scenario, context, progress, diagnostics);
    const double flops =
        training_flops(model, training.flops, {training.seq, training.decoder_seq},
                       training.global_batch, false, training.lora_rank.has_value());
    for (RankedPlan& row : rows)
      row.mfu = flops / row.step_s() / static_cast<double>(gpus_) /
                kernels.peak_flops(training.dtype.compute);
    if (rows.size() > top_) rows.resize(top_);
    if (!scenario_.empty()) write_scenario(plan_document(rows.front().candidate.plan, experts));
    const double wall = now_s() - start;
    if (json_) {
      io.out = to_text(to_json(found, rows, experts, wall, searched)) + "\n";
      return kOk;
    }
    io.out = fmt::format("{} on {} x {}: {} sequences of {} tokens per step\n",
                         training.model.name.empty() ? llm_ : training.model.name, gpus_, gpu.name,
                         training.global_batch, training.seq);
    io.out += fmt::format(
        "{} plans estimated in {:.1f} s, {} more do not fit {:.0f} GB, {} shapes break a rule\n\n",
        found.evaluated, searched, found.too_large, limits.memory_bytes / 1e9, found.illegal);
    io.out += plan_table(rows, experts, limits.memory_bytes);
    if (rows.size() > 1) {
      io.out += fmt::format("\nthe second is {:.1f} % slower; by estimate it spends: {}\n",
                            100 * (rows[1].step_s() / rows[0].step_s() - 1),
                            difference(rows[0].candidate.time, rows[1].candidate.time));
    }
    io.out += fmt::format("\"plan\": {}\n",
                          to_text(plan_document(rows.front().candidate.plan, experts), 0));
    return kOk;
  }

 private:
  bool answers() const { return mode_ == "inference"; }

  void check_options(Diagnostics& diagnostics) const {
    if (!answers()) return;
    const auto refuse = [&](bool given, const char* option) {
      if (given) diagnostics.error({}, option, "only training has it", "leave it out");
    };
    refuse(batch_.has_value(), "--global-batch");
    refuse(seq_.has_value(), "--seq");
    refuse(simulate_.has_value(), "--simulate");
  }

  int serve(Io& io, const Fabric& fabric, Scenario scenario, Diagnostics& diagnostics) const {
    const double start = now_s();
    const InferenceSpec& spec = *scenario.jobs.front().inference;
    const bool experts = spec.model.experts.has_value();
    const bool level = spec.serving.slo.ttft || spec.serving.slo.tpot;
    const std::string name = spec.model.name.empty() ? llm_ : spec.model.name;
    SearchLimits limits;
    limits.gpus_per_server =
        host_facts(fabric, {fabric.gpus().begin(), fabric.gpus().end()}).server_gpus;
    limits.tp_across_servers = tp_across_;
    limits.fixed = keys_;
    Progress progress(io.err);
    RunContext context = run_context(progress);
    context.explain = false;
    context.library = remembering(context.library, fabric);
    ServedPlans found =
        search_served(fabric, std::move(scenario), limits, context, progress, diagnostics);
    if (found.best.empty()) {
      if (found.tried == 0) refuse_all(found.broken, experts);
      io.err << fmt::format("does not fit: none of {} plans; the smallest is {}\n", found.tried,
                            found.smallest);
    }
    if (found.best.size() > top_) found.best.resize(top_);
    if (!scenario_.empty() && !found.best.empty())
      write_scenario(served_plan(found.best.front().plan, experts));
    if (json_) {
      Json out = head();
      out.set("requests", *job_.find("requests"));
      out.set("candidates_tried", found.tried);
      out.set("too_large_for_memory", found.too_large);
      out.set("illegal", found.illegal);
      out.set("wall_s", now_s() - start);
      Json& plans = out.set("plans", Json::array());
      for (const ServedPlan& row : found.best) plans.push(served_row(row, experts));
      io.out = to_text(out) + "\n";
    } else if (!found.best.empty()) {
      io.out = fmt::format(
          "{} on {} x {}, asked {}\n{} plans simulated, {} of them do not fit, {} break a rule\n\n",
          name, gpus_, fabric.gpu_spec(fabric.gpus().front()).name,
          to_text(*job_.find("requests"), 0), found.tried, found.too_large, found.illegal);
      io.out += served_table(found.best, experts, level);
    }
    return found.best.empty() ? kLimit : kOk;
  }

  Json head() const {
    Json out = Json::object();
    out.set("weft", json_head());
    out.set("llm", llm_);
    out.set("fabric", fabric_);
    out.set("gpus", gpus_);
    return out;
  }

  // Servers are added until there are enough GPUs.
  LoadedFabric load(Diagnostics& diagnostics) {
    // What is said of the size in the file holds only where that size stays.
    Diagnostics as_written = diagnostics;
    LoadedFabric loaded = load_fabric(fabric_, sets_, as_written);
    const auto have = static_cast<std::int64_t>(loaded.fabric.gpus().size());
    if (have < gpus_ && loaded.fabric.spec().network && loaded.fabric.types().size() == 1) {
      const auto each = static_cast<std::int64_t>(loaded.fabric.types().front().gpus.size());
      servers_ = (gpus_ + each - 1) / each;
      Settings sets = sets_;
      sets.emplace_back("/servers", Json(servers_));
      loaded = load_fabric(fabric_, sets, diagnostics);
    } else {
      diagnostics = std::move(as_written);
    }
    if (static_cast<std::int64_t>(loaded.fabric.gpus().size()) < gpus_)
      throw InputError(fmt::format("error: --gpus: {} GPUs are wanted, the fabric has {}\n", gpus_,
                                   loaded.fabric.gpus().size()));
    return loaded;
  }

  // Of two values for one thing the last would silently win.
  static void refuse_repeats(const std::string& flag, const Settings& settings,
                             Diagnostics& diagnostics) {
    for (std::size_t i = 0; i < settings.size(); ++i) {
      const auto before =
          std::ranges::find(settings.begin(), settings.begin() + static_cast<std::ptrdiff_t>(i),
                            settings[i].first, &Settings::value_type::first);
      const auto index = static_cast<std::size_t>(before - settings.begin());
      if (index == i) continue;
      diagnostics.error(
          {}, flag,
          fmt::format("{} is given twice: number {} is {}, number {} is {}", settings[i].first,
                      index + 1, setting_text(before->first, before->second), i + 1,
                      setting_text(settings[i].first, settings[i].second)),
          "leave one of them out");
    }
  }

  Json fixed_plan() {
    Json plan = Json::object();
    for (const auto& [key, value] : fixed_) {
      plan.set(key, value);
      keys_.insert(key);
    }
    return plan;
  }

  // Clients that keep a replica busy, and twice as many requests.
  Json answering(const Json& model, const Json& plan) const {
    Json out = Json::object();
    out.set("kind", "inference");
    out.set("gpus", gpus_);
    out.set("model", model);
    out.set("plan", plan);
    out.set("dtype", Json::object());
    Json& requests = out.set("requests", Json::object());
    requests.set("arrival", "closed");
    requests.set("concurrency", kClientsPerGpu * gpus_);
    requests.set("count", 2 * kClientsPerGpu * gpus_);
    requests.set("prompt", kPrompt);
    requests.set("output", kAnswer);
    out.set("serving", Json::object());
    return out;
  }

  Json job(const Json& model, const Json& plan, std::int64_t seq, std::int64_t batch) const {
    Json out = Json::object();
    out.set("kind", "training");
    out.set("gpus", gpus_);
    out.set("model", model);
    out.set("seq", seq);
    out.set("global_batch", batch);
    out.set("plan", plan);
    out.set("dtype", Json::object());
    return out;
  }

  // What has a flag of its own, and what the search sets: two words for one thing would silently beat each other.
  void check_job_sets(Diagnostics& diagnostics) const {
    static const std::map<std::string, std::string> flags{
        {"gpus", "--gpus"}, {"model", "--llm"},
        {"seq", "--seq"},   {"global_batch", "--global-batch"},
        {"kind", "--mode"}, {"plan", "--fix"}};
    for (const auto& [pointer, value] : job_sets_) {
      const std::string key = pointer.substr(1, pointer.find('/', 1) - 1);
      if (const auto flag = flags.find(key); flag != flags.end())
        diagnostics.error({}, "--job", fmt::format("/{} is what {} says", key, flag->second),
                          fmt::format("use {}", flag->second));
    }
  }

  Scenario read(Loader& loader, const Json& fabric, Diagnostics& diagnostics) {
    check_job_sets(diagnostics);
    refuse_repeats("--fix", fixed_, diagnostics);
    refuse_repeats("--job", job_sets_, diagnostics);
    const Json model = loader.load_component("model", llm_);
    const Json plan = fixed_plan();
    diagnostics.throw_if_errors();
    const LlmSpec spec = read_llm(model, "--llm", diagnostics);
    diagnostics.throw_if_errors();
    if (!seq_) seq_ = std::min(kDefaultSeq, spec.context.value_or(kDefaultSeq));
    if (!batch_) {
      std::int64_t batch = 1;
      while (batch * 2 * *seq_ <= kDefaultTokens || batch < gpus_ / 8) batch *= 2;
      batch_ = batch;
    }
    Json document = Json::object();
    document.set("fabric", fabric);
    Json& jobs = document.set("jobs", Json::array());
    jobs.push(answers() ? answering(model, plan) : job(model, plan, *seq_, *batch_));
    Json& job = document.find("jobs")->items.front();
    apply_sets(loader, job, job_sets_);
    job_ = job;
    Scenario scenario;
    read_on(diagnostics, [&](Diagnostics& out) { scenario = read_scenario(document, out); });
    diagnostics.throw_if_errors();
    return scenario;
  }

  SearchLimits search_limits(const GpuSpec& gpu, const TrainingSpec& training,
                             Progress& progress) const {
    if (!gpu.memory)
      throw InputError(fmt::format("error: the memory of {} is not known\n", gpu.name));
    SearchLimits limits;
    limits.gpus_per_server = training.host.server_gpus;
    limits.tp_across_servers = tp_across_;
    limits.memory_bytes = gpu.memory->value();
    limits.fixed = keys_;
    limits.keep = std::max<std::size_t>(top_, wanted());
    limits.progress = [&progress, gpus = training.gpus](std::uint64_t evaluated) {
      progress.show(fmt::format("{} plans for {} GPUs", evaluated, gpus));
    };
    return limits;
  }

  std::size_t wanted() const {
    if (simulate_) return static_cast<std::size_t>(*simulate_);
    return gpus_ <= kFewGpus ? 8 : 0;
  }

  std::vector<RankedPlan> simulate(const SearchResult& found, const Fabric& fabric,
                                   Scenario scenario, const RunContext& context, Progress& progress,
                                   Diagnostics& diagnostics) const {
    std::vector<RankedPlan> rows;
    if (context.models.training) {
      for (const PlanCandidate* candidate : chosen(found)) {
        progress.show(fmt::format("simulating plan {}", rows.size() + 1));
        scenario.jobs.front().training->plan = candidate->plan;
        rows.push_back({*candidate, run_on(fabric, scenario, context, diagnostics)
                                        .jobs.front()
                                        .details.find("step_time_s")
                                        ->number});
      }
    }
    std::ranges::stable_sort(rows, {}, &RankedPlan::step_s);
    std::set<std::string> simulated;
    for (const RankedPlan& row : rows) simulated.insert(text_of(row.candidate));
    for (const PlanCandidate& candidate : found.best)
      if (!simulated.contains(text_of(candidate))) rows.push_back({.candidate = candidate});
    return rows;
  }

  static std::string text_of(const PlanCandidate& candidate) {
    return to_text(write_config(candidate.plan), 0);
  }

  // To be simulated: the best, and where nobody says how many the best of every kind that comes near.
  std::vector<const PlanCandidate*> chosen(const SearchResult& found) const {
    std::vector<const PlanCandidate*> out;
    const std::size_t first = std::min(wanted(), found.best.size());
    std::set<std::string> taken;
    const auto take = [&](const PlanCandidate& candidate) {
      if (taken.insert(text_of(candidate)).second) out.push_back(&candidate);
    };
    for (std::size_t i = 0; i < first; ++i) take(found.best[i]);
    if (simulate_ || first == 0) return out;
    const double near = kNear * found.best.front().time.step_s;
    for (const PlanCandidate& candidate : found.kinds)
      if (candidate.time.step_s < near) take(candidate);
    return out;
  }

  int nothing_fits(Io& io, const SearchResult& found, const Architecture& model,
                   TrainingSpec& training, const SearchLimits& limits) const {
    const bool experts = training.model.experts.has_value();
    if (found.too_large == 0) refuse_all(broken_rules(model, training, limits).closest(), experts);
    training.plan = found.smallest.plan;
    Diagnostics ignored;
    const auto stages =
        training_memory(model, training, stage_layout(model, training.plan, ignored));
    const MemoryUse& fullest = *std::ranges::max_element(stages, {}, &MemoryUse::total);
    const std::string sum = explain(fullest, limits.memory_bytes);
    io.err << fmt::format("does not fit: of {} plans the smallest needs {}\n    {}\n",
                          found.too_large, sum, plan_words(training.plan, experts));
    if (json_) {
      Json out = to_json(found, {}, experts, 0, 0);
      out.set("does_not_fit", sum);
      io.out = to_text(out) + "\n";
    }
    return kLimit;
  }

  Json to_json(const SearchResult& found, const std::vector<RankedPlan>& rows, bool experts,
               double wall, double searched) const {
    Json out = head();
    out.set("seq", *seq_);
    out.set("global_batch", *batch_);
    out.set("candidates_tried", found.evaluated);
    out.set("too_large_for_memory", found.too_large);
    out.set("illegal", found.illegal);
    out.set("search_s", searched);
    out.set("wall_s", wall);
    Json& plans = out.set("plans", Json::array());
    for (const RankedPlan& row : rows) plans.push(plan_row(row, experts));
    if (rows.size() > 1)
      out.set("runner_up_spends", difference(rows[0].candidate.time, rows[1].candidate.time));
    return out;
  }

  // What a file refers to, from wherever the scenario is written to.
  static Json reference(const std::string& name) {
    return Json(name.ends_with(".json") ? std::filesystem::absolute(name).string() : name);
  }

  // The job as it was asked for, with this plan.
  void write_scenario(Json plan) const {
    Json document = Json::object();
    Json& head = document.set("weft", Json::object());
    head.set("schema", 1);
    Json fabric = Json::object();
    fabric.set("use", reference(fabric_));
    Json changes = Json::object();
    for (const auto& [pointer, value] : sets_) changes.set(pointer, value);
    if (servers_ > 0) changes.set("/servers", servers_);
    if (!changes.members.empty()) fabric.set("set", std::move(changes));
    document.set("fabric", std::move(fabric));
    Json model = Json::object();
    model.set("use", reference(llm_));
    Json job = job_;
    job.set("model", std::move(model));
    job.set("plan", std::move(plan));
    document.set("jobs", Json::array()).push(std::move(job));
    write_file(scenario_, to_text(document) + "\n");
  }

  std::string llm_, fabric_, mode_ = "training", scenario_;
  std::int64_t gpus_ = 0, servers_ = 0;
  std::optional<std::int64_t> batch_, seq_, simulate_;
  std::size_t top_ = 5;
  Settings sets_, fixed_, job_sets_;
  std::set<std::string> keys_;
  Json job_;
  bool json_ = false, tp_across_ = false;
};

}  // namespace

extern const Verb kPlan;
const Verb kPlan{"plan", "searches the fastest parallel plans of a language model that fit",
                 make_command<PlanCommand>};

}  // namespace weft
