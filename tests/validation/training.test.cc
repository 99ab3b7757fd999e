// SPDX-License-Identifier: Apache-2.0
// The shipped training records as they stand in their files: what is assumed is assumed for a whole set, and what is held out
// is held out for all runs of a model on a kind of GPU.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/validate_case.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

struct Shipped {
  Dataset dataset;
  std::string problems;
};

const Shipped& shipped() {
  static const Shipped out = [] {
    Shipped all;
    Diagnostics diagnostics;
    const std::filesystem::path folder(std::string(WEFT_SOURCE_DIR) + "/tests/validation");
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (!entry.path().filename().string().starts_with("train_")) continue;
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      read_validation_file(parse_json(text.str(), entry.path().string(), diagnostics), all.dataset,
                           diagnostics);
    }
    all.problems = diagnostics.text();
    return all;
  }();
  return out;
}

const Json* at(const Json& from, const std::string& pointer) {
  const Json* value = &from;
  const auto tokens = parse_pointer(pointer);
  if (!tokens) return nullptr;
  for (const std::string& token : *tokens) {
    value = value->find(token);
    if (value == nullptr) return nullptr;
  }
  return value;
}

std::string gpu_of(const std::string& fabric) {
  for (const char* name : {"gb200", "gb300", "b200", "b300", "a100", "h100", "v100"}) {
    if (fabric.find(name) != std::string::npos) return name;
  }
  return fabric;
}

TEST(ShippedTraining, IsReadWithoutAWord) {
  EXPECT_EQ(shipped().problems, "");
  EXPECT_GT(shipped().dataset.records.size(), 400U);
}

TEST(ShippedTraining, AssumesOneValueForAWholeSet) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> values;
  for (const ValidationRecord& record : shipped().dataset.records) {
    for (const std::string& pointer : record.train.assumed) {
      const Json* value = at(record.train.written, pointer);
      ASSERT_NE(value, nullptr) << record.id << pointer;
      values[{record.set, pointer}].insert(to_text(*value, 0));
    }
  }
  for (const auto& [key, different] : values)
    EXPECT_EQ(different.size(), 1U) << key.first << key.second;
}

TEST(ShippedTraining, HoldsOutAllRunsOfAModelOnAKindOfGpu) {
  std::map<std::string, std::set<bool>> sides;
  for (const ValidationRecord& record : shipped().dataset.records) {
    const Json* model = record.train.model.find("use");
    ASSERT_NE(model, nullptr) << record.id;
    sides[model->text + " on " + gpu_of(record.train.fabric)].insert(record.held_out);
  }
  std::size_t held_out = 0;
  for (const auto& [group, kinds] : sides) {
    EXPECT_EQ(kinds.size(), 1U) << group;
    held_out += kinds.contains(true) ? 1 : 0;
  }
  EXPECT_GT(held_out, 20U);
}

TEST(ShippedTraining, NamesTheSourceOfEveryRow) {
  for (const ValidationRecord& record : shipped().dataset.records)
    EXPECT_NE(record.source, "") << record.id;
}

TEST(ShippedTraining, RatiosAreOfRecordsThatAreThere) {
  std::set<std::string> ids;
  for (const ValidationRecord& record : shipped().dataset.records) ids.insert(record.id);
  EXPECT_GT(shipped().dataset.ratios.size(), 30U);
  for (const RatioSpec& ratio : shipped().dataset.ratios) {
    EXPECT_TRUE(ids.contains(ratio.base)) << ratio.base;
    for (const std::string& id : ratio.rows) EXPECT_TRUE(ids.contains(id)) << id;
  }
}

}  // namespace
}  // namespace weft
