// SPDX-License-Identifier: Apache-2.0
// config.json of language models, and files of kind llm: what is read can be counted and is written and read back to itself.
#include "calibrate/import/hf_config.hpp"
#include "models/llm/flops.hpp"
#include "tests/fuzz/import_log.hpp"

namespace weft::fuzz {
namespace {

void check_counts(const LlmSpec& spec) {
  const Architecture model(spec);
  FUZZ_CHECK(std::isfinite(model.total()) && model.active() > 0 && model.active() <= model.total());
  FUZZ_CHECK(model.kv_bytes_per_token(2) >= 0);
  FUZZ_CHECK(model.kv_bytes(4096, 2) >= 0 && std::isfinite(model.kv_bytes(4096, 2)));
  for (const auto& [convention, name] : enum_names(FlopsConvention{}))
    FUZZ_CHECK(training_flops(model, convention, 4096, 1, true) > 0);
  FUZZ_CHECK(hardware_flops(model, 4096, 1, Recompute::full) >=
             hardware_flops(model, 4096, 1, Recompute::none));
}

void check_llm(std::string_view text) {
  Diagnostics out;
  const Json json = parse_json(text, "llm.json", out);
  if (!out.ok()) return;
  const LlmSpec spec = read_llm(json, {}, out);
  check_problems(out);
  if (!out.ok()) return;
  check_counts(spec);
  const Json written = write_llm(spec);
  const LlmSpec again = read_llm(written, {}, out);
  FUZZ_CHECK(out.ok());
  FUZZ_CHECK(to_text(write_config(again)) == to_text(write_config(spec)));
}

}  // namespace
}  // namespace weft::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0) weft::fuzz::check_llm(weft::fuzz::view(data + 1, size - 1));
  return weft::fuzz::check_import(weft::kHfConfigImporter, data, size);
}
