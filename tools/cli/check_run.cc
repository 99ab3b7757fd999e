// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/check_run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/loader.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/simulate.hpp"

namespace weft {
namespace {

Json to_json(const Judgement& judgement) {
  const ExpectSpec& e = *judgement.expected;
  Json out = Json::object();
  out.set("what", e.what);
  out.set("pointer", e.number);
  out.set("value", judgement.value ? Json(*judgement.value) : Json{});
  if (e.min) out.set("min", *e.min);
  if (e.max) out.set("max", *e.max);
  if (!e.claim.empty()) out.set("claim", e.claim);
  if (e.disputed) out.set("disputed", true);
  out.set("met", judgement.met);
  if (!judgement.value) out.set("problem", judgement.problem);
  return out;
}

std::string to_text(const Judgement& judgement, bool colour) {
  const ExpectSpec& e = *judgement.expected;
  const std::string verdict = e.disputed && judgement.value
                                  ? paint("disputed", Colour::yellow, colour)
                              : judgement.met ? paint("ok      ", Colour::green, colour)
                                              : paint("FAILED  ", Colour::red, colour);
  std::string number =
      judgement.value ? fmt::format("{:.4g}", *judgement.value) : judgement.problem;
  const std::string band = band_text(e);
  if (!band.empty()) number += fmt::format("  ({}{})", e.disputed ? "claimed " : "", band);
  std::string out = fmt::format("  {}  {}{}\n            {}\n", verdict, e.what,
                                e.claim.empty() ? "" : " [" + e.claim + "]", number);
  if (!e.note.empty()) out += fmt::format("            note: {}\n", e.note);
  return out;
}

}  // namespace

CheckRun check_run(const std::string& path, Io& io) {
  Configs files(find_configs_root());
  Diagnostics diagnostics;
  Loader loader(files, diagnostics);
  const Json document = loader.load_file(path);
  diagnostics.throw_if_errors();
  const Scenario scenario = read_scenario(document, diagnostics);
  diagnostics.throw_if_errors();
  Progress progress(io.err);
  RunContext context = run_context(progress);
  context.explain = std::ranges::any_of(
      scenario.expect, [](const ExpectSpec& e) { return e.number.starts_with("/bottlenecks"); });
  const Json report = to_json(run_timed(scenario, context, diagnostics));
  const auto run = [&](const std::map<std::string, Json>& set) {
    Json changed = document;
    for (const auto& [pointer, value] : set) loader.set(changed, pointer, value);
    diagnostics.throw_if_errors();
    const Scenario variant = read_scenario(changed, diagnostics);
    diagnostics.throw_if_errors();
    return to_json(run_timed(variant, context, diagnostics));
  };
  CheckRun out;
  out.fingerprint = report.find("fingerprint")->text;
  out.expect = Json::array();
  for (const Judgement& judgement : judge(scenario.expect, report, run)) {
    out.met = out.met && judgement.met;
    out.expect.push(to_json(judgement));
    out.text += to_text(judgement, io.colour);
  }
  if (scenario.expect.empty()) out.text = "  it expects nothing: add \"expect\"\n";
  return out;
}

}  // namespace weft
