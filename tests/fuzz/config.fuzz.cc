// SPDX-License-Identifier: Apache-2.0
// Parameter sets: what is read without a problem is written and read back to the same. The first line names the struct.
#include "sim/core/config.hpp"

#include "models/catalog.hpp"
#include "sim/run/scenario.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

template <class Spec>
std::optional<Spec> check(const Json& json, Diagnostics out) {
  Spec spec;
  read_config(json, {}, spec, out);
  fuzz::check_problems(out);
  if (!out.ok()) return std::nullopt;
  const Json written = write_config(spec);
  Spec again;
  read_config(written, {}, again, out);
  FUZZ_CHECK(out.ok());
  FUZZ_CHECK(to_text(write_config(again)) == to_text(written));
  return spec;
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  std::string_view text = fuzz::view(data, size);
  const std::string_view kind = fuzz::take_line(text);
  Diagnostics out;
  const Json json = parse_json(text, "input.json", out);
  if (!out.ok()) return 0;
  if (kind == "gpu") check<GpuSpec>(json, out);
  if (kind == "nic") check<NicSpec>(json, out);
  if (kind == "switch") check<SwitchSpec>(json, out);
  if (kind == "server") check<ServerSpec>(json, out);
  if (kind == "network") check<NetworkSpec>(json, out);
  if (kind == "job") check<JobSpec>(json, out);
  if (kind == "fault") check<FaultSpec>(json, out);
  if (kind == "models") check<ModelsSpec>(json, out);
  if (kind == "fabric") {
    read_fabric(json, {}, out);
    fuzz::check_problems(out);
  }
  if (kind == "scenario") {
    read_scenario(json, out);
    fuzz::check_problems(out);
  }
  if (kind == "link") {
    if (const auto link = check<LinkSpec>(json, out)) {
      const LinkLaw law = link_law(*link, link_classes(), out);
      fuzz::check_problems(out);
      if (out.ok()) {
        FUZZ_CHECK(law.raw.bps > 0);
        FUZZ_CHECK(law.efficiency() > 0 && law.efficiency() <= 1);
      }
    }
  }
  return 0;
}
