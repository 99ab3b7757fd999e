// SPDX-License-Identifier: Apache-2.0
// The command line: one file per verb that ends in one record, and one list of the records in cli.cc.
//
//   class Topo final : public Command {
//    public:
//     void add(CLI::App& app) override { app.add_option("fabric", fabric_, "a fabric ...")->required(); }
//     int run(Io& io) override { io.out += "..."; return kOk; }
//    private:
//     std::string fabric_;
//   };
//   const Verb kTopo{"topo", "nodes, links, tiers and weak spots of a fabric", make_command<Topo>};
//
// A verb appends its whole answer to Io::out, which is printed when it returns: an error leaves standard output empty.
// Exit codes: 0 ok, 2 bad input, 3 a device, library or tool is missing, 4 a limit was reached, 70 our bug.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/diagnostics.hpp"
#include "sim/core/json.hpp"
#include "sim/fabric/fabric.hpp"
#include "tools/cli/terminal.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weft {

enum ExitCode : int { kOk = 0, kBadInput = 2, kMissing = 3, kLimit = 4, kBug = 70 };

// Something outside of weft is not there: a GPU, a library, a tool. Exit code 3.
struct Missing : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Io {
  std::string out;      // printed to standard output when the verb returns, not when it throws
  std::ostream& err;    // messages and progress
  bool colour = false;  // standard output is a terminal that wants colour
};

class Command {
 public:
  virtual ~Command() = default;
  virtual void add(CLI::App& app) = 0;  // declares options and positionals
  virtual int run(Io& io) = 0;          // returns an ExitCode
};

template <class T>
std::unique_ptr<Command> make_command() {
  return std::make_unique<T>();
}

struct Verb {
  std::string_view name, summary;
  std::unique_ptr<Command> (*make)();
};

// Runs one command as the program does; `args` without the program's name. Used by main and by tests.
int run_cli(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

// The same without the last step: the answer is in io.out, and what went wrong is thrown: InputError (see input_problems.hpp),
// Missing, LimitReached, or any other exception for a bug of ours.
int run_verb(std::vector<std::string> args, Io& io);

// ---- what several verbs need

// What a command line changes, in its order: values by JSON pointer, or by key.
using Settings = std::vector<std::pair<std::string, Json>>;

// An option of which each use sets one value: {"--set", "PTR=VALUE", "/servers=128"}. PTR begins with '/'.
struct SettingForm {
  std::string flag, form, example;
};
// VALUE is JSON, else a string. Throws InputError that names every text of another form.
Settings read_settings(const std::vector<std::string>& texts, const SettingForm& form);
// The text that is read as this.
std::string setting_text(const std::string& pointer, const Json& value);
// Of {PTR: VALUE, ...}.
Settings settings_of(const Json& changes);
CLI::Option* add_settings_option(CLI::App& app, const SettingForm& form, Settings& settings,
                                 const std::string& help);

// `--set PTR=VALUE` (any number) and `--json`, with the same words everywhere.
void add_set_option(CLI::App& app, Settings& sets);
void add_json_flag(CLI::App& app, bool& json);
// As CLI::Range, which lets NaN pass.
std::function<std::string(const std::string&)> number_between(double low, double high);

// The head of every JSON answer: {"weft": {"version", "schema"}}.
Json json_head();

// Changes a loaded document.
class Loader;
void apply_sets(Loader& loader, Json& document, const Settings& sets);

// A file says {"use": NAME, "set": {"/servers": 4}}; the loaded document has the component in its place. A pointer as the file
// is written, /fabric/use or /fabric/set/~1servers, therefore means /fabric or /fabric/servers.
std::string resolved_pointer(const std::string& pointer);

// Runs `read` even when `diagnostics` holds errors, so that a person sees all problems at once; then errors at places that
// were reported before are taken for consequences and left out.
void read_on(Diagnostics& diagnostics, const std::function<void(Diagnostics&)>& read);

struct LoadedFabric {
  Json document;  // resolved, sets applied
  Fabric fabric;
};
// A fabric or server by its catalogue name or a path ending in .json. Throws InputError with all problems; warnings stay
// in `diagnostics`.
LoadedFabric load_fabric(const std::string& reference, const Settings& sets,
                         Diagnostics& diagnostics);

}  // namespace weft
