// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/probe.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "calibrate/probe/session.hpp"
#include "calibrate/probe/synthetic.hpp"
#include "sim/core/check.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/output.hpp"
#ifdef WEFT_HAS_CUDA
#include "calibrate/probe/cuda/cuda_backend.hpp"
#endif

namespace weft {
namespace {

std::atomic<int> stop_signals{0};

extern "C" void on_stop_signal(int) {
  // The second one does not wait for the test to end: what was measured is in the journal.
  if (++stop_signals > 1) ::_exit(kLimit);
}

void catch_signals() {
  std::signal(SIGINT, on_stop_signal);
  std::signal(SIGTERM, on_stop_signal);
  std::signal(SIGXFSZ, SIG_IGN);  // then a write says what is wrong
  std::signal(SIGPIPE, SIG_IGN);
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

struct ProbeArguments {
  std::string backend, fabric, fault = "none", output, truth, name, only;
  Settings sets;
  std::vector<std::string> of_synthetic;  // options that were given and mean nothing elsewhere
  std::int64_t seed = 1;
  double noise = 0.02, pace = 0;
  bool dry_run = false, quick = false, resume = false, overwrite = false, anonymous = false;
};

constexpr const char* kFooter =
    "Measures GPUs, their links, NCCL and kernels into a measurement file that `weft calibrate` "
    "fits. Changes no clock, mode or other setting.\n"
    "Several processes: start one per GPU by mpirun or torchrun; the first collects.";

void declare(CLI::App& app, ProbeArguments& a) {
  app.set_version_flag("--version", std::string("weft-probe " WEFT_VERSION));
  app.footer(kFooter);
  app.add_option("-o,--output", a.output, "the measurement file");
  app.add_option("--backend", a.backend, "cuda: this machine; synthetic: a made-up one")
      ->check(CLI::IsMember({"cuda", "synthetic"}));
  app.add_flag("--dry-run", a.dry_run, "print the plan and how long it takes");
  app.add_flag("--quick", a.quick, "fewer sizes and shapes: under a minute on one GPU");
  app.add_option("--only", a.only, "only tests whose names match, e.g. \"copy *\"");
  app.add_flag("--resume", a.resume, "go on with the file: tests that are in it are not repeated");
  app.add_flag("--overwrite", a.overwrite, "start anew where the file is there already");
  app.add_flag("--anonymous", a.anonymous, "names of hosts, serial numbers and GUIDs stay out");
  app.add_option("--name", a.name, "of the measurement; default: the stem of the file");
  app.add_option("--fabric", a.fabric, "synthetic: the fabric or server that the machine is like");
  app.add_option("--seed", a.seed, "synthetic: of the hidden parameters, the fault and the noise")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->type_name("0 and more");
  app.add_option("--noise", a.noise, "synthetic: relative deviation of tests and runs, 0.02")
      ->check(number_between(0, 0.5));
  app.add_option("--fault", a.fault, "synthetic: what is wrong with the machine")
      ->check(CLI::IsMember({"none", "slow-link", "half-width", "wrong-affinity"}));
  app.add_option("--truth", a.truth, "synthetic: also write the hidden machine, as a fabric");
  app.add_option("--pace", a.pace, "synthetic: seconds that every test really takes")
      ->check(number_between(0, 60));
  add_set_option(app, a.sets);
}

ProbeFault fault_of(const std::string& name) {
  if (name == "slow-link") return ProbeFault::slow_link;
  if (name == "half-width") return ProbeFault::half_width;
  return name == "wrong-affinity" ? ProbeFault::wrong_affinity : ProbeFault::none;
}

class Probe {
 public:
  Probe(ProbeArguments arguments, const std::vector<std::string>& command, std::ostream& out,
        std::ostream& err)
      : a_(std::move(arguments)), command_(command), out_(out), err_(err) {}

  int run() {
    check();
    make_backend();
    if (backend_->serve()) return kOk;
    const ProbeMachine machine = backend_->machine();
    const ProbePlan plan = make_plan(machine, {.quick = a_.quick, .only = a_.only});
    if (plan.tests.empty() && !a_.only.empty())
      throw InputError(
          fmt::format("error: --only: no test of the plan matches \"{}\"\n"
                      "    --dry-run without --only lists their names\n",
                      a_.only));
    if (a_.dry_run) {
      out_ << plan_text(plan) << std::flush;
      return kOk;
    }
    return measure(machine, plan);
  }

 private:
  void check() {
    Diagnostics out;
    if (a_.output.empty() && !a_.dry_run)
      out.error({}, "-o", "where do the results go?", "e.g. -o box.json");
    if (a_.resume && a_.overwrite)
      out.error({}, "--resume", "--overwrite starts anew", "give one of them");
    if (a_.backend.empty()) {
#ifdef WEFT_HAS_CUDA
      a_.backend = a_.fabric.empty() ? "cuda" : "synthetic";
#else
      a_.backend = "synthetic";
#endif
    }
    const bool synthetic = a_.backend == "synthetic";
    if (synthetic && a_.fabric.empty())
      out.error({}, "--fabric", "a made-up machine needs a fabric",
                "e.g. --fabric hgx-h100; see `weft list servers`");
    for (const std::string& name : a_.of_synthetic)
      if (!synthetic) out.error({}, name, "is of the synthetic backend", "leave it out");
    const std::string journal = a_.output + ".journal";
    for (const std::string& other : {a_.output, journal}) {
      if (!a_.output.empty() && same_file(a_.truth, other))
        out.error({}, "--truth", fmt::format("{} holds the measurement", other),
                  "give the hidden machine a file of its own");
    }
    out.throw_if_errors();
    for (const std::string& written : {a_.output, journal, a_.truth}) {
      if (!a_.output.empty() || written == a_.truth) refuse_overwriting(written, {a_.fabric});
    }
  }

  void make_backend() {
    if (a_.backend == "synthetic") {
      Diagnostics out;
      const LoadedFabric loaded = load_fabric(a_.fabric, a_.sets, out);
      auto backend = std::make_unique<SyntheticBackend>(
          loaded.document,
          SyntheticOptions{static_cast<std::uint64_t>(a_.seed), a_.noise, fault_of(a_.fault),
                           a_.pace},
          out);
      out.throw_if_errors();
      if (!a_.truth.empty() && !a_.dry_run) write_truth(backend->truth());
      source_ = fmt::format("synthetic machine like {}, seed {}", a_.fabric, a_.seed);
      backend_ = std::move(backend);
      return;
    }
#ifdef WEFT_HAS_CUDA
    backend_ = make_cuda_backend();
    source_ = "this machine";
#else
    throw Missing(
        "this weft-probe was built without CUDA; build it where nvcc is, or use --backend "
        "synthetic");
#endif
  }

  void write_truth(const HiddenMachine& truth) const {
    Json document = truth.document;
    if (!truth.fault.empty()) document.set("summary", truth.fault);
    if (const std::string trouble = replace_file(a_.truth, to_text(document) + "\n");
        !trouble.empty())
      throw InputError(fmt::format("error: cannot write {}\n", trouble));
  }

  Measurement head(const ProbeMachine& machine) const {
    Measurement head = new_measurement(a_.name, "weft-probe", source_);
    if (head.name.empty()) head.name = std::filesystem::path(a_.output).stem().string();
    head.version = WEFT_VERSION;
    head.date = utc_now();
    head.summary = fmt::format("{} GPUs, {}", machine.gpus.size(), source_);
    head.sources[""] = fmt::format("measured: weft-probe {} on {}, {}", WEFT_VERSION, source_,
                                   head.date.substr(0, 10));
    head.hosts = machine.hosts;
    if (a_.backend == "synthetic") {
      // A run that is resumed must be of the same hidden machine.
      head.setup["backend"] = "synthetic";
      head.setup["like"] = a_.fabric;
      head.setup["seed"] = fmt::format("{}", a_.seed);
      head.setup["noise"] = fmt::format("{}", a_.noise);
      head.setup["fault"] = a_.fault;
      std::vector<std::string> sets;
      for (const auto& [pointer, value] : a_.sets) sets.push_back(setting_text(pointer, value));
      if (!sets.empty()) head.setup["set"] = join(sets, " ");
    }
    // As nccl-tests says it: what is measured has the launches of one process in it, or of many.
    head.setup["nGpus"] = fmt::format("{}", machine.gpus_per_process);
    if (!machine.hosts.empty() && !machine.hosts[0].nccl.empty())
      head.setup["nccl"] = machine.hosts[0].nccl;
    if (a_.anonymous) {
      const auto sources = head.sources;
      const auto setup = head.setup;
      anonymise(head);
      head.sources = sources;
      head.setup = setup;
    }
    return head;
  }

  int measure(const ProbeMachine& machine, const ProbePlan& plan) {
    const auto how = a_.resume      ? ResultFile::Open::resume
                     : a_.overwrite ? ResultFile::Open::replace
                                    : ResultFile::Open::fresh;
    catch_signals();
    ResultFile file(a_.output, head(machine), how);
    SessionResult result;
    {
      Progress progress(err_);
      const SessionHooks hooks{
          .stop = [] { return stop_signals > 0; },
          .tell = [&](const std::string& line) { err_ << "weft-probe: " << line << "\n"; },
          .progress =
              [&](std::size_t i, std::size_t n, const PlannedTest& test) {
                progress.show(fmt::format("{}/{}  {}", i + 1, n, test.name));
              }};
      result = run_session(plan, *backend_, file, hooks);
    }
    return conclude(plan, result, file);
  }

  int conclude(const ProbePlan& plan, const SessionResult& result, ResultFile& file) {
    const ResultFile::Written written = file.finish();
    if (!written.trouble.empty())
      err_ << fmt::format("weft-probe: cannot write {}\n", written.trouble);
    if (!written.whole) {
      err_ << "weft-probe: nothing could be written: the results follow on standard output\n";
      out_ << written.document << std::flush;
      return kLimit;
    }
    if (result.end == SessionEnd::broken && backend_->restarts()) start_again();
    std::string said = fmt::format("{}: {} tests done", written.path, result.done);
    if (result.skipped > 0) said += fmt::format(", {} were there already", result.skipped);
    if (result.failed > 0) said += fmt::format(", {} failed", result.failed);
    if (!plan.impossible.empty())
      said += fmt::format(", {} cannot be done on this machine", plan.impossible.size());
    const std::size_t left = plan.tests.size() - result.done - result.failed - result.skipped;
    if (left > 0) said += fmt::format("; {} not run, --resume goes on", left);
    out_ << said << "\n" << std::flush;
    return left > 0 || written.path != a_.output ? kLimit : kOk;
  }

  // The device hangs or has failed: only a new process can use it. Its test is recorded, so it does not come again.
  void start_again() {
    std::vector<std::string> words{"weft-probe"};
    for (const std::string& word : command_) {
      if (word != "--overwrite" && word != "--resume") words.push_back(word);
    }
    words.emplace_back("--resume");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    err_ << "weft-probe: the device does not answer any more; a new process goes on\n"
         << std::flush;
    constexpr unsigned kFirst = 3;  // what the driver has open would keep the device busy
    ::close_range(kFirst, ~0U, 0);
    ::execv("/proc/self/exe", arguments.data());
  }

  ProbeArguments a_;
  std::vector<std::string> command_;
  std::ostream &out_, &err_;
  std::unique_ptr<ProbeBackend> backend_;
  std::string source_;
};

int parse_and_run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CLI::App app{"Measures a machine with GPUs, for weft to be calibrated by.", "weft-probe"};
  ProbeArguments arguments;
  declare(app, arguments);
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    out << app.help() << std::flush;
    return kOk;
  } catch (const CLI::CallForVersion& version) {
    out << version.what() << "\n" << std::flush;
    return kOk;
  } catch (const CLI::ParseError& problem) {
    throw InputError(fmt::format("error: {}\n    see `weft-probe --help`\n", problem.what()));
  }
  for (const char* name :
       {"--fabric", "--seed", "--noise", "--fault", "--truth", "--pace", "--set"})
    if (app.get_option(name)->count() > 0) arguments.of_synthetic.emplace_back(name);
  return Probe(std::move(arguments), args, out, err).run();
}

}  // namespace

int run_probe(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  try {
    return parse_and_run(args, out, err);
  } catch (const InputError& problem) {
    err << problem.what();
    return kBadInput;
  } catch (const UnusablePath& problem) {
    err << "error: " << problem.what() << "\n";
    return kBadInput;
  } catch (const NoMachine& problem) {
    err << "weft-probe: " << problem.what() << "\n";
    return kMissing;
  } catch (const Missing& problem) {
    err << "weft-probe: " << problem.what() << "\n";
    return kMissing;
  } catch (const LimitReached& problem) {
    err << "weft-probe: limit reached: " << problem.what() << "\n";
    return kLimit;
  } catch (const std::exception& problem) {
    err << "weft-probe: bug: " << problem.what() << "\n";
    return kBug;
  }
}

}  // namespace weft
