// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/cli.hpp"

#include <algorithm>
#include <charconv>
#include <new>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "models/catalog.hpp"
#include "sim/core/check.hpp"
#include "sim/core/loader.hpp"
#include "sim/core/text.hpp"
#include "tools/cli/file_source.hpp"

namespace weft {

extern const Verb kCalibrate, kCheck, kDiff, kExplain, kExplainLog, kImport, kList, kNcclTests,
    kP2p, kPlan, kReport, kRun, kServe, kSweep, kTartan, kTopo, kValidate;

namespace {

// In the order of `weft --help`.
const std::vector<const Verb*>& verbs() {
  static const std::vector<const Verb*> all{
      &kRun,       &kServe,   &kReport,     &kSweep,    &kDiff,     &kCheck,
      &kList,      &kExplain, &kExplainLog, &kTopo,     &kP2p,      &kImport,
      &kNcclTests, &kTartan,  &kPlan,       &kValidate, &kCalibrate};
  return all;
}

void refuse_unknown_verb(const std::string& word) {
  std::vector<std::string> names;
  for (const Verb* verb : verbs()) {
    if (verb->name == word) return;
    names.emplace_back(verb->name);
  }
  throw InputError(fmt::format("error: there is no command \"{}\"{}\n    see `weft --help`\n", word,
                               did_you_mean(word, names)));
}

// The innermost subcommand that was chosen.
const CLI::App* chosen(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
  return app;
}

void refuse_extras(const CLI::App& app) {
  const CLI::App* verb = chosen(&app);
  const std::vector<std::string> extras = verb->remaining();
  if (extras.empty()) return;
  std::vector<std::string> flags;
  for (const CLI::Option* option : verb->get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  std::string text;
  for (const std::string& extra : extras) {
    if (extra.starts_with('-')) {
      const std::string flag = extra.substr(0, extra.find('='));
      text += fmt::format("error: `weft {}` has no flag \"{}\"{}\n", verb->get_name(), flag,
                          did_you_mean(flag, flags));
    } else if (text.empty()) {
      text += fmt::format("error: `weft {}` does not expect \"{}\"\n", verb->get_name(), extra);
    }
  }
  throw InputError(text + fmt::format("    see `weft {} --help`\n", verb->get_name()));
}

void clear_places(Json& json) {
  json.place = {};
  for (Json& item : json.items) clear_places(item);
  for (JsonMember& member : json.members) {
    member.place = {};
    clear_places(member.value);
  }
}

// What stands for VALUE on a command line: JSON, else a string.
Json value_of(const std::string& text) {
  Diagnostics trial;
  Json value = parse_json(text, "value", trial);
  if (!trial.ok()) return Json(text);
  clear_places(value);
  return value;
}

}  // namespace

int run_verb(std::vector<std::string> args, Io& io) {
  CLI::App app{
      "Simulates GPU interconnect fabrics: how long communication takes, and what limits it.",
      "weft"};
  app.set_version_flag("--version", std::string("weft " WEFT_VERSION));
  app.require_subcommand(0, 1);
  std::vector<std::pair<CLI::App*, std::unique_ptr<Command>>> commands;
  for (const Verb* verb : verbs()) {
    CLI::App* sub = app.add_subcommand(std::string(verb->name), std::string(verb->summary));
    sub->allow_extras();
    commands.emplace_back(sub, verb->make());
    commands.back().second->add(*sub);
  }
  if (args.empty()) throw InputError(app.help());
  if (args.front() == "help") {
    args.erase(args.begin());
    args.push_back("--help");
  }
  if (!args.front().starts_with('-')) refuse_unknown_verb(args.front());
  try {
    std::ranges::reverse(args);  // the order that CLI11 takes a vector in
    app.parse(std::move(args));
  } catch (const CLI::CallForHelp&) {
    io.out = app.help();
    return kOk;
  } catch (const CLI::CallForVersion& version) {
    io.out = std::string(version.what()) + "\n";
    return kOk;
  } catch (const CLI::ParseError& problem) {
    refuse_extras(app);
    const CLI::App* verb = chosen(&app);
    throw InputError(fmt::format("error: {}\n    see `weft {}--help`\n", problem.what(),
                                 verb == &app ? std::string{} : verb->get_name() + " "));
  }
  refuse_extras(app);
  for (const auto& [sub, command] : commands) {
    if (sub->parsed()) return command->run(io);
  }
  throw InputError(app.help());
}

int run_cli(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  Io io{.err = err, .colour = wants_colour(out)};
  int code = kOk;
  const auto fail = [&](int with, std::string_view text) {
    io.out.clear();
    err << text << (text.ends_with('\n') ? "" : "\n");
    code = with;
  };
  try {
    code = run_verb(args, io);
  } catch (const InputError& problem) {
    fail(kBadInput, problem.what());
  } catch (const Missing& problem) {
    fail(kMissing, fmt::format("weft: {}", problem.what()));
  } catch (const LimitReached& problem) {
    fail(kLimit, fmt::format("weft: limit reached: {}", problem.what()));
  } catch (const std::bad_alloc&) {
    fail(kLimit, "weft: limit reached: out of memory");
  } catch (const std::exception& problem) {
    fail(kBug, fmt::format("weft: bug: {}", problem.what()));
  } catch (...) {
    fail(kBug, "weft: bug: an exception of unknown type");
  }
  out << io.out << std::flush;
  if (!out && code == kOk) fail(kLimit, "weft: cannot write to standard output");
  return code;
}

// ---- what several verbs need

Settings read_settings(const std::vector<std::string>& texts, const SettingForm& form) {
  Diagnostics problems;
  Settings out;
  const bool pointer = form.form.starts_with("PTR");
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || (pointer && !text.starts_with('/')))
      problems.error({}, {}, fmt::format("{} \"{}\" is not {}", form.flag, text, form.form),
                     fmt::format("write e.g. {} {}", form.flag, form.example));
    else
      out.emplace_back(text.substr(0, equals), value_of(text.substr(equals + 1)));
  }
  problems.throw_if_errors();
  return out;
}

std::string setting_text(const std::string& pointer, const Json& value) {
  const bool plain = value.is_string() && value_of(value.text).is_string() &&
                     value_of(value.text).text == value.text;
  return pointer + "=" + (plain ? value.text : to_text(value, 0));
}

Settings settings_of(const Json& changes) {
  Settings out;
  for (const JsonMember& member : changes.members) {
    out.emplace_back(member.key, member.value);
    clear_places(out.back().second);
  }
  return out;
}

CLI::Option* add_settings_option(CLI::App& app, const SettingForm& form, Settings& settings,
                                 const std::string& help) {
  const auto read = [form, &settings](const std::vector<std::string>& texts) {
    settings = read_settings(texts, form);
  };
  return app.add_option_function<std::vector<std::string>>(form.flag, read, help)
      ->type_name(form.form)
      ->allow_extra_args(false);
}

void add_set_option(CLI::App& app, Settings& sets) {
  add_settings_option(app, {"--set", "PTR=VALUE", "/servers=128"}, sets,
                      "change a value of the file: pointer and JSON (or text), e.g. /servers=128");
}

std::function<std::string(const std::string&)> number_between(double low, double high) {
  return [low, high](const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good =
        error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high;
    return good ? std::string{} : fmt::format("\"{}\" is no number from {} to {}", text, low, high);
  };
}

void add_json_flag(CLI::App& app, bool& json) {
  app.add_flag("--json", json, "one JSON document instead of text");
}

Json json_head() {
  Json head = Json::object();
  head.set("version", WEFT_VERSION);
  head.set("schema", 1);
  return head;
}

std::string resolved_pointer(const std::string& pointer) {
  constexpr std::string_view kUse = "/use", kSet = "/set/";
  if (pointer.size() > kUse.size() && pointer.ends_with(kUse))
    return pointer.substr(0, pointer.size() - kUse.size());
  const auto at = pointer.find(kSet);
  if (at == std::string::npos) return pointer;
  return pointer.substr(0, at) +
         json_pointer_unescape(pointer.substr(at + kSet.size())).value_or("");
}

void apply_sets(Loader& loader, Json& document, const Settings& sets) {
  for (const auto& [pointer, value] : sets) loader.set(document, resolved_pointer(pointer), value);
}

void read_on(Diagnostics& diagnostics, const std::function<void(Diagnostics&)>& read) {
  if (diagnostics.ok()) return read(diagnostics);
  Diagnostics trial = diagnostics;
  const std::size_t known = trial.problems().size();
  read(trial);
  const auto consequence = [&](const Problem& problem) {
    for (std::size_t i = 0; i < known; ++i) {
      const Problem& cause = trial.problems()[i];
      const bool same_place = cause.place.file == problem.place.file &&
                              cause.place.line == problem.place.line &&
                              cause.place.column == problem.place.column;
      // Values from the command line have no place of their own.
      const bool below = !cause.pointer.empty() && problem.pointer.starts_with(cause.pointer);
      if (same_place && (cause.place.line > 0 || below)) return true;
    }
    return false;
  };
  for (std::size_t i = known; i < trial.problems().size(); ++i) {
    const Problem& problem = trial.problems()[i];
    if (problem.severity == Problem::Severity::error && !consequence(problem)) {
      diagnostics.error(problem.place, problem.pointer, problem.fact, problem.cure);
    }
  }
}

LoadedFabric load_fabric(const std::string& reference, const Settings& sets,
                         Diagnostics& diagnostics) {
  Configs files(find_configs_root());
  Loader loader(files, diagnostics);
  LoadedFabric loaded;
  loaded.document = loader.load_component("fabric", reference);
  diagnostics.throw_if_errors();
  const Json* kind = loaded.document.find("kind");
  if (kind == nullptr || (kind->text != "fabric" && kind->text != "server")) {
    diagnostics.error(kind != nullptr ? kind->place : loaded.document.place, "/kind",
                      fmt::format("\"{}\" is not a fabric or server", reference),
                      "see `weft list fabrics` and `weft list servers`");
  }
  diagnostics.throw_if_errors();
  apply_sets(loader, loaded.document, sets);
  FabricSpec spec;
  read_on(diagnostics, [&](Diagnostics& out) { spec = read_fabric(loaded.document, {}, out); });
  diagnostics.throw_if_errors();
  loaded.fabric = build_fabric(std::move(spec), link_classes(), diagnostics);
  diagnostics.throw_if_errors();
  return loaded;
}

}  // namespace weft
