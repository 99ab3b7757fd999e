// SPDX-License-Identifier: Apache-2.0
// Which numbers of a machine a calibration may change: values of its resolved document, named by JSON pointer. One parameter
// is one value for a class of parts: all links made of one component, all GPUs of one model; the graph says which paths
// use them.
//
// Prior.   The value that the catalogue has, and how far off it may be: the standard deviation of its logarithm, by what the
//          number is and where it comes from. A cost of software differs between hosts (0.3 to 0.5), a link's payload
//          share follows from its packets (0.03), what is assumed is worth less than what is measured.
// Example: "kernels.ll_step of h100-sxm5", /nodes/0/model/kernels/ll_step, 0.49 us, 0.3.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/nccl/predict.hpp"
#include "sim/core/config.hpp"
#include "sim/core/json.hpp"

namespace weft {

enum class ParameterUnit { time, bandwidth, share };
constexpr auto enum_names(ParameterUnit) {
  using enum ParameterUnit;
  return std::array<EnumName<ParameterUnit>, 3>{
      {{time, "time"}, {bandwidth, "bandwidth"}, {share, "share"}}};
}

// What a parameter may change: bits.
enum class ParameterReach : std::uint8_t { collectives = 1, copies = 2, kernels = 4 };

struct Parameter {
  std::string name;
  std::vector<std::string> pointers;  // all take the same value
  ParameterUnit unit = ParameterUnit::time;
  double prior = 0;     // seconds, bits per second, or a plain number
  double prior_sd = 0;  // of the logarithm
  double lower = 0, upper = 0;
  std::string evidence;  // source of the prior as the document gives it; empty when it gives none
  std::uint8_t reach = 7;
  // `value` times e^step, or the other way where a bound is nearer than that, or the farther bound.
  double nudged(double value, double step) const;
  bool reaches(ParameterReach part) const { return (reach & static_cast<std::uint8_t>(part)) != 0; }
};

// What is measured decides what is asked for.
struct ParameterQuestion {
  NcclHarness harness = NcclHarness::unknown;
  bool collectives = true;
  bool copies = false;  // peer copies
  bool kernels = false;
};

// Of a resolved fabric or server. Order: as the document has them.
std::vector<Parameter> find_parameters(const Json& document, const ParameterQuestion& question);

// As a document holds it: exact to the picosecond and bit per second; or in six digits, "0.489812 us".
Json parameter_value(ParameterUnit unit, double value);
Json parameter_short(ParameterUnit unit, double value);
std::string parameter_text(ParameterUnit unit, double value);
// What parameter_value() gave; 0 when it is something else.
double parameter_number(ParameterUnit unit, const Json& value);

// Sets a value of a resolved document; its last key may be new. False when the pointer leads nowhere.
bool set_value(Json& document, const std::string& pointer, Json value);
const Json* find_value(const Json& document, const std::string& pointer);
// Where the value was written, or what is nearest around it; nullopt of a document that was not read from a file.
std::optional<Place> nearest_place(const Json& document, const std::string& pointer);
// The tag of the nearest enclosing `sources` that covers the value; empty without one.
std::string source_of(const Json& document, const std::string& pointer);

}  // namespace weft
