// SPDX-License-Identifier: Apache-2.0
#include "sim/run/scenario.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/config_defaults.hpp"

namespace weft {
namespace {

struct ScenarioFile {
  SchemaVersion weft;
  std::string name, question, note;
  Json fabric;
  std::optional<NcclSpec> nccl;
  Fidelity fidelity = Fidelity::fluid;
  std::int64_t seed = 1;
  std::vector<JobSpec> jobs;
  std::optional<JobSpec> workload;
  std::vector<FaultSpec> faults;
  ObserveSpec observe;
  ModelsSpec models;
  std::vector<ExpectSpec> expect;
  template <class V>
  void visit(V&& v) {
    v("weft", weft, "the file format");
    v("name", name, "the scenario's name");
    v("question", question, "what a person wants to know");
    v("note", note, "what a reader of the answer should know");
    v("fabric", fabric, "a fabric or server of the catalogue, with changes", required);
    v("fidelity", fidelity, "analytic, fluid or packet");
    v("seed", seed, "of everything random", between(0, 9.0e15));
    v("nccl", nccl, "collectives run as this release of NCCL would run them");
    v("jobs", jobs, "what runs");
    v("workload", workload, "the short form of one job");
    v("faults", faults, "what breaks, and when");
    v("observe", observe, "what to report");
    v("models", models, "details of the models");
    v("expect", expect,
      "bands that a run of this scenario must stay in; checked by `weft check --run`");
  }
};

// Whether a problem was found in the job itself: then what the job lacks may only be what could not be read.
bool has_problems(const JobSpec& job, const Diagnostics& out) {
  return std::ranges::any_of(out.problems(), [&](const Problem& problem) {
    return problem.severity == Problem::Severity::error &&
           problem.pointer.starts_with(job.pointer + "/");
  });
}

bool is_inference(const JobSpec& job) {
  return job.kind ? *job.kind == JobKind::inference
                  : job.inference_keys.requests || job.inference_keys.serving;
}
bool is_training(const JobSpec& job) {
  return job.kind ? *job.kind == JobKind::training
                  : job.training_keys.model.kind != Json::Kind::null && !is_inference(job);
}

// A job with a model as one; keys that it does not take, and keys that nothing else takes.
void read_model_keys(JobSpec& job, const Json& written, Diagnostics& out) {
  if (!written.is_object()) return;
  const auto refuse = [&](std::string_view key, std::string_view fact, std::string_view cure) {
    if (const Json* found = written.find(key)) {
      out.error(found->place, fmt::format("{}/{}", job.pointer, key), std::string(fact),
                std::string(cure));
    }
  };
  const auto wrong = [&](const Problem& problem) {
    return problem.severity == Problem::Severity::error && problem.pointer == job.pointer + "/kind";
  };
  if (std::ranges::any_of(out.problems(), wrong)) return;  // what it may take is not known
  const bool trains = is_training(job), serves = is_inference(job);
  if (!serves) {
    for (const char* key : {"requests", "serving"})
      refuse(key, "only inference jobs take this key", "leave it out, or \"kind\"");
  }
  if (!trains && !serves) {
    for (const std::string& key : training_keys_in(written))
      refuse(
          key, "only training jobs take this key",
          job.kind ? R"("kind": "training", or leave it out)" : R"(add "model", or leave it out)");
    return;
  }
  const char* foreign =
      trains ? "a training job does not take this key" : "an inference job does not take this key";
  for (const std::string_view key :
       {"collective", "size", "algorithm", "root", "channels", "chunk", "expand", "group_size",
        "group_stride", "p2p", "flows", "pattern", "queue_pairs"})
    refuse(key, foreign, "make it a job of its own");
  refuse("repeat", foreign,
         trains ? R"("steps": {"measure": 8})" : R"("requests": {"count": 100})");
  const std::size_t before = out.error_count();
  const auto keep = [&](auto spec, auto& into, JobKind kind) {
    if (out.error_count() != before || has_problems(job, out)) return;
    if (spec.gpus > 0) job.gpus = spec.gpus;
    job.kind = kind;
    into = std::move(spec);
  };
  if (serves) {
    keep(read_inference(written, job.pointer, job.training_keys, job.inference_keys, job.gpus,
                        job.placement.order, out),
         job.inference, JobKind::inference);
  } else {
    keep(read_training(written, job.pointer, job.training_keys, job.gpus, job.placement.order, out),
         job.training, JobKind::training);
  }
}

void check_job(const JobSpec& job, const FabricSpec&, Diagnostics& out) {
  if (job.place.line == 0 && job.pointer.empty())
    return;  // not an object; reported when it was read
  if (job.kind == JobKind::trace) {
    out.error(job.place, job.pointer + "/kind",
              fmt::format("not yet: {} jobs", write_config(*job.kind).text),
              "this version runs collectives, copies, flows, training and inference");
    return;
  }
  if (has_problems(job, out) || is_training(job) || is_inference(job)) return;
  const int shapes = (job.collective ? 1 : 0) + (job.p2p ? 1 : 0) + (job.flows.empty() ? 0 : 1) +
                     (job.pattern ? 1 : 0);
  if (shapes != 1) {
    out.error(job.place, job.pointer,
              shapes == 0 ? "the job does nothing"
                          : "the job is more than one of collective, p2p, flows and pattern",
              "give exactly one of \"collective\", \"p2p\", \"flows\" and \"pattern\"");
    return;
  }
  if (job.kind) {
    const JobKind real = job.collective ? JobKind::collective
                         : job.p2p      ? JobKind::p2p
                                        : JobKind::flows;
    if (*job.kind != real)
      out.error(job.place, job.pointer + "/kind", "the kind does not fit the job's keys",
                "leave it out");
  }
  if ((job.collective || job.pattern) && !job.size) {
    out.error(job.place, job.pointer, "the key \"size\" is missing", "e.g. \"size\": \"1 GiB\"");
  }
  if (job.queue_pairs && job.flows.empty() && !job.pattern) {
    out.error(job.place, job.pointer + "/queue_pairs",
              "only flows and patterns are split over queue pairs",
              "leave it out; \"channels\" splits a collective");
  }
  if (job.group_stride != 1 && !job.group_size && job.pattern != Pattern::ring) {
    out.error(job.place, job.pointer + "/group_stride", "there are no groups",
              "add \"group_size\"");
  }
  const bool times = job.repeat.kind == Json::Kind::integer && job.repeat.integer >= 1 &&
                     job.repeat.integer <= 1'000'000;
  const bool until_end = job.repeat.is_string() && job.repeat.text == "until-end";
  if (job.repeat.kind != Json::Kind::null && !times && !until_end) {
    out.error(job.repeat.place, job.pointer + "/repeat",
              "not a number of iterations from 1 to 1000000", "or \"until-end\"");
  }
  const auto positive_size = [&](const std::optional<Bytes>& size) {
    return !size || size->count >= 0;
  };
  if (!positive_size(job.size)) out.error(job.place, job.pointer + "/size", "a negative size");
}

// What weft's own algorithms take and NCCL decides for itself.
void check_nccl_job(const JobSpec& job, Diagnostics& out) {
  if (!job.collective || !job.algorithm.empty()) return;
  const auto refuse = [&](const char* key, const char* cure) {
    out.error(job.place, job.pointer + "/" + key,
              fmt::format("\"{}\" is of weft's own algorithms; here NCCL decides", key), cure);
  };
  if (job.expand) refuse("expand", "name an \"algorithm\" of weft's own, or leave \"nccl\" out");
  if (job.channels) refuse("channels", "set NCCL_MAX_NCHANNELS or NCCL_MIN_NCHANNELS in /nccl/env");
  if (job.chunk) refuse("chunk", "name an \"algorithm\" of weft's own, or leave \"nccl\" out");
}

}  // namespace

Scenario read_scenario(const Json& document, Diagnostics& out) {
  ScenarioFile file;
  read_config(document, {}, file, out);
  Scenario scenario;
  scenario.weft = file.weft;
  scenario.name = file.name;
  scenario.question = file.question;
  scenario.note = file.note;
  scenario.seed = file.seed;
  scenario.faults = std::move(file.faults);
  scenario.observe = std::move(file.observe);
  scenario.models = std::move(file.models);
  scenario.nccl = std::move(file.nccl);
  scenario.expect = std::move(file.expect);
  check_expectations(scenario.expect, out);
  if (const Json* packet = find_at(document, "/models/packet"))
    check_packet(scenario.models.packet, *packet, "/models/packet", out);
  scenario.place = document.place;
  scenario.fidelity = file.fidelity;
  if (const Json* fabric = document.find("fabric"))
    scenario.fabric = read_fabric(*fabric, "/fabric", out);
  scenario.jobs = std::move(file.jobs);
  if (file.workload) {
    if (!scenario.jobs.empty()) {
      out.error(document.find("workload")->place, "/workload", "\"jobs\" is given too",
                "\"workload\" is its short form: keep one");
    }
    scenario.jobs.push_back(std::move(*file.workload));
  }
  if (scenario.jobs.empty() && out.ok()) {
    out.error(document.place, {}, "nothing to run", "add \"workload\" or \"jobs\"");
  }
  for (JobSpec& job : scenario.jobs) {
    if (const Json* written = find_at(document, job.pointer)) read_model_keys(job, *written, out);
    check_job(job, scenario.fabric, out);
    if (scenario.nccl) check_nccl_job(job, out);
  }
  if (!scenario.jobs.empty() &&
      std::ranges::all_of(scenario.jobs,
                          [](const JobSpec& job) { return job.repeat.is_string(); }) &&
      out.ok()) {
    out.error(scenario.jobs.front().repeat.place, scenario.jobs.front().pointer + "/repeat",
              "every job repeats until the end, so there is no end",
              "give one job a number of iterations");
  }
  for (const FaultSpec& fault : scenario.faults) {
    if (fault.until && *fault.until <= fault.at) {
      out.error(fault.place, fault.pointer + "/until", "the repair is not after the fault",
                "give a later time");
    }
  }
  scenario.document = document;
  return scenario;
}

Json scenario_schema() { return schema_with_defaults<ScenarioFile>(); }

}  // namespace weft
