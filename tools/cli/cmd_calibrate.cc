// SPDX-License-Identifier: Apache-2.0
// weft calibrate: from measurements of a machine to a fabric that predicts it. One file per action, each ending in its record.
#include <CLI/CLI.hpp>

#include "tools/cli/cli.hpp"

namespace weft {

extern const Verb kCalibrateFit, kCalibrateCheck, kCalibrateSuggest, kCalibrateMerge,
    kCalibrateInspect;

namespace {

class Calibrate final : public Command {
 public:
  void add(CLI::App& app) override {
    app.require_subcommand(0, 1);
    for (const Verb* verb : {&kCalibrateFit, &kCalibrateCheck, &kCalibrateSuggest, &kCalibrateMerge,
                             &kCalibrateInspect}) {
      CLI::App* sub = app.add_subcommand(std::string(verb->name), std::string(verb->summary));
      sub->allow_extras();
      actions_.emplace_back(sub, verb->make());
      actions_.back().second->add(*sub);
    }
    app_ = &app;
  }

  int run(Io& io) override {
    for (const auto& [sub, action] : actions_)
      if (sub->parsed()) return action->run(io);
    throw InputError(app_->help());
  }

 private:
  CLI::App* app_ = nullptr;
  std::vector<std::pair<CLI::App*, std::unique_ptr<Command>>> actions_;
};

}  // namespace

extern const Verb kCalibrate;
const Verb kCalibrate{"calibrate", "fits a fabric to measurements of a machine, with intervals",
                      make_command<Calibrate>};

}  // namespace weft
