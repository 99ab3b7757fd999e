// SPDX-License-Identifier: Apache-2.0
// Inputs that are wrong in one way or several: every problem comes with file, line, column, pointer, fact and cure, the exit
// code is 2, standard output stays empty, and nothing takes long or grows large. The inputs are in tests/cli/data.
#include <algorithm>
#include <regex>

#include <gmock/gmock.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::weft_cli;
using testing::HasSubstr;

// One problem that must be told: where (LINE:COLUMN of the file), the pointer, words of the fact and, if any, of the cure.
struct Told {
  std::string where, pointer, fact, cure;
};

struct Case {
  std::string verb, file;
  std::vector<Told> told;  // all of them, and no other
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.verb << " " << c.file;
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size()))
    ++count;
  return count;
}

class Broken : public testing::TestWithParam<Case> {};

TEST_P(Broken, IsRefusedWithPlaceFactAndCure) {
  const Case& c = GetParam();
  const auto outcome = weft_cli({c.verb, cli_test::data(c.file + ".json")});
  SCOPED_TRACE(outcome.err);
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(count_of(outcome.err, ": error: "), c.told.size());
  for (const Told& told : c.told) {
    const std::string pointer = told.pointer.empty() ? "" : told.pointer + ": ";
    EXPECT_THAT(outcome.err, HasSubstr(":" + told.where + ": error: " + pointer));
    EXPECT_THAT(outcome.err, HasSubstr(told.fact));
    EXPECT_THAT(outcome.err, HasSubstr(told.cure));
  }
  EXPECT_LT(outcome.seconds, 10);
  EXPECT_LT(cli_test::peak_gib(), 2);
}

// Every problem is two lines, the second one a cure, unless the fact itself says what was meant.
TEST_P(Broken, EveryProblemHasACure) {
  const auto outcome = weft_cli({GetParam().verb, cli_test::data(GetParam().file + ".json")});
  SCOPED_TRACE(outcome.err);
  std::istringstream lines(outcome.err);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  static const std::regex head(R"(^[^\n]+\.json:[0-9]+:[0-9]+: (error|warning): .+$)");
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].starts_with("    ")) continue;
    EXPECT_TRUE(std::regex_match(all[i], head)) << all[i];
    const bool cured =
        i + 1 < all.size() && all[i + 1].starts_with("    ") && all[i + 1].size() > 6;
    EXPECT_TRUE(cured || all[i].find("did you mean") != std::string::npos) << all[i];
  }
}

const Case kCases[] = {
    // quantities
    {"check",
     "wrong_unit",
     {{"3:52", "/workload/size", "\"1 GiBit\" is not a size", "write a number and a unit"}}},
    {"check",
     "bare_number",
     {{"3:52", "/workload/size", "1024 has no unit, a size is needed", "\"4 MiB\""}}},
    {"check",
     "time_too_long",
     {{"3:70", "/workload/start", "\"1000 h\" is more than 720 h", "check the unit"}}},
    {"check",
     "size_too_large",
     {{"3:52", "/workload/size", "\"3 PiB\" is more than 1 PiB", "check the unit"}}},
    {"check",
     "negative_bandwidth",
     {{"4:11", "/rate", "\"-5 Gb/s\" is not a bandwidth", "\"400 Gb/s\""}}},
    {"check",
     "zero_bandwidth",
     {{"4:11", "/rate", "must be greater than zero", "leave the key out"}}},
    {"check",
     "rate_too_large",
     {{"4:11", "/rate", "\"9000 Tb/s\" is more than 1000 Tb/s", "check the unit"}}},
    {"check", "no_rate", {{"1:1", "", "the link's \"rate\" is missing", "write \"rate\""}}},
    {"check",
     "pcie_generation",
     {{"1:1", "/generation", "PCIe generation 8 is not known", "1 to 6"}}},
    // the shape of the file
    {"check",
     "unknown_key",
     {{"3:16", "/workload/colective", "unknown key, did you mean \"collective\"?", ""}}},
    {"check",
     "unknown_collective",
     {{"3:30", "/workload/collective", "did you mean \"all_reduce\"?",
       "one of all_reduce, all_gather"}}},
    {"check", "duplicate_keys", {{"4:3", "", "key \"seed\" appears twice", "remove one of them"}}},
    {"check", "not_a_number", {{"3:11", "", "not JSON", "JSON has no NaN: leave the key out"}}},
    {"check", "infinity", {{"3:60", "", "not JSON", "JSON has no infinity: leave the key out"}}},
    {"check",
     "number_overflow",
     {{"3:11", "", "not JSON: number overflow", "numbers go to about 1.8e308"}}},
    {"check",
     "integer_overflow",
     {{"3:11", "/seed", "too large for a whole number", "at most 9223372036854775807"}}},
    {"check", "truncated", {{"3:37", "", "not JSON: ", "a missing comma, quote or bracket"}}},
    {"check",
     "just_a_list",
     {{"1:1", "", "an array where a weft file holds an object", "write {...}"}}},
    {"check", "no_kind", {{"1:1", "", "neither a \"kind\" nor a scenario's", "kinds: gpu, nic"}}},
    {"check",
     "unknown_kind",
     {{"1:10", "/kind", "there is no kind \"sever\", did you mean \"server\"?",
       "kinds: gpu, nic"}}},
    {"check",
     "wrong_types",
     {{"2:22", "/weft/schema", "\"1\" where a whole number is needed", "without quotes"},
      {"3:11", "/name", "7 where a string is needed", "double quotes"},
      {"4:25", "/fabric/servers", "\"4\" where a whole number is needed", ""},
      {"4:40", "/fabric/server", "true or false where an object is needed", "write {...}"},
      {"4:57", "/fabric/network", "an array where an object is needed", ""},
      {"5:11", "/seed", "1.5 where a whole number is needed", ""},
      {"6:21", "/jobs/0/name", "an array where a string is needed", ""},
      {"6:36", "/jobs/0/gpus", "\"8\" where a whole number is needed", ""},
      {"6:55", "/jobs/0/collective", "3 where a word is needed", "one of all_reduce"},
      {"6:66", "/jobs/0/size", "true or false where a size is needed", ""},
      {"6:81", "/jobs/0/root", "null where a whole number is needed", ""},
      {"6:100", "/jobs/0/placement", "\"packed\" where an object is needed", ""},
      {"6:111", "/jobs/1", "7 where an object is needed", ""},
      {"7:13", "/faults", "an object where an array is needed", "write [...]"},
      {"8:14", "/observe", "an array where an object is needed", ""},
      {"9:31", "/models/merge_classes", "\"yes\" where true or false is needed",
       "write true or false"},
      {"9:63", "/models/collective/launch", "7 has no unit, a time is needed", ""}}},
    // references
    {"check",
     "unknown_name",
     {{"2:21", "/fabric/use", "did you mean \"dgx1-p100\"?", "see `weft list`"}}},
    {"check",
     "wrong_kind_of_part",
     {{"2:13", "/fabric", "there is no fabric named \"p100-sxm2\"", "see `weft list`"}}},
    {"check", "missing_file", {{"2:21", "/fabric/use", "cannot read", "check the name"}}},
    {"check", "folder_as_file", {{"2:21", "/fabric/use", "cannot read", "check the name"}}},
    {"check",
     "cycle",
     {{"1:9", "/use", "files include each other in a cycle: ", "break the cycle"}}},
    {"check",
     "cycle_a",
     {{"1:9", "/use", "files include each other in a cycle: ", "break the cycle"}}},
    {"check",
     "own_cycle",
     {{"2:21", "/fabric/use", "files include each other in a cycle: ", "break the cycle"}}},
    {"check",
     "key_beside_use",
     {{"2:41", "/fabric/servers", "only \"set\" may stand beside \"use\"",
       "write \"set\": {\"/servers\""}}},
    {"check",
     "set_nowhere",
     {{"4:42", "/netwrok/oversubscription", "did you mean \"network\"?", "it has: "},
      {"4:72", "/network/switch/radix/x", "/network/switch has no \"radix\"", "ports"}}},
    {"check",
     "set_index",
     {{"4:33", "/links/999/count", "there is no item \"999\"", "items count from 0 to"}}},
    {"check",
     "set_no_pointer",
     {{"4:22", "links", "not a JSON pointer", "start with \"/\""},
      {"4:33", "/a~2", "not a JSON pointer", "start with \"/\""},
      {"4:40", "", "not a JSON pointer", "start with \"/\""}}},
    {"check",
     "set_not_an_object",
     {{"2:41", "/fabric/set", "an object of pointers and values is needed", "write \"set\": {"}}},
    // servers
    {"check",
     "disconnected_gpu",
     {{"1:1", "/nodes", "\"gpu9\" is not connected to \"gpu0\"", "add the missing links"}}},
    {"check", "zero_gpus", {{"1:1", "/nodes", "a server without GPUs", "add a node of kind gpu"}}},
    {"check", "no_nodes", {{"3:12", "/nodes", "must not be empty", "at least one"}}},
    {"check",
     "duplicate_id",
     {{"6:5", "/nodes/2/id", "the id \"gpu2\" is used twice", "give each node its own id"}}},
    {"check",
     "unknown_node",
     {{"8:5", "/links/0", "there is no node \"cpu\", did you mean \"cpu0\"?",
       "listed under \"nodes\""}}},
    {"check",
     "bad_range",
     {{"4:5", "/nodes/0/id", "\"gpu[3-0]\" is not a name or a range", "\"gpu[0-7]\""},
      {"5:5", "/nodes/1/id", "\"a:b\" is not a name or a range", "letters, digits"}}},
    {"check",
     "pair_each",
     {{"8:5", "/links/0", "\"each\" pairs 4 nodes with 3", "the same length"}}},
    {"check",
     "pair_block",
     {{"8:5", "/links/0", "4 nodes cannot be split into 3 equal blocks", "a multiple"}}},
    {"check",
     "link_to_itself",
     {{"9:5", "/links/1", "a link from \"gpu0\" to itself", "name two nodes"}}},
    {"check",
     "gpu_without_model",
     {{"4:5", "/nodes/0", "the GPU's model is missing", "\"model\""}}},
    {"check",
     "wrong_role",
     {{"6:5", "/nodes/2/role", "\"management\" is not a role", "compute or storage"}}},
    {"check",
     "many_nodes",
     {{"4:5", "/nodes/0/id", "a server of more than 4096 nodes", "by a network"}}},
    {"check",
     "many_pairs",
     {{"7:5", "/links/0", "more than 1000000 joined pairs", "by a network"}}},
    // networks
    {"check",
     "billion_servers",
     {{"3:14", "/servers", "1000000000 is outside 1 to 1000000", "from 1 to 1000000"}}},
    {"check",
     "million_servers",
     {{"1:1", "/servers", "more than the 24000000 that can be held", "fewer servers"}}},
    {"check", "zero_servers", {{"3:14", "/servers", "0 is outside 1 to 1000000", ""}}},
    {"check",
     "radix",
     {{"6:14", "/network", "40 NIC ports do not fit one switch of 36 ports", "leaf-spine"}}},
    {"check",
     "leaf_radix",
     {{"6:14", "/network", "a leaf needs 30 ports down and 30 up, the switch has 36",
       "hosts_per_leaf"}}},
    {"check",
     "zero_oversubscription",
     {{"6:82", "/network/oversubscription", "0 is outside 0.01 to 1000", ""}}},
    {"check",
     "torus_dims",
     {{"6:14", "/network", "0 is not a possible size of a dimension", "at least 1"}}},
    {"check",
     "torus_without_dims",
     {{"6:14", "/network", "a torus needs \"dims\"", "\"dims\": [4, 4, 4]"}}},
    {"check",
     "torus_large",
     {{"6:14", "/network", "65536 is not a possible size", "points at most"}}},
    {"check", "dragonfly_large", {{"6:14", "/network", "that can be held", "a smaller network"}}},
    {"check", "fat_tree_large", {{"6:14", "/network", "that can be held", ""}}},
    {"check",
     "self_cable",
     {{"7:16", "/network/cables/0", "\"server0/nic0\" is not a NIC such as nic0", "weft topo"},
      {"8:7", "/network/cables/1", "a cable from a switch to itself", "name two ends"}}},
    {"check",
     "nic_without_cable",
     {{"6:14", "/network", "server1/nic0 has no cable", "a cable for every NIC"}}},
    {"check",
     "unknown_cable_end",
     {{"7:16", "/network/cables/0", "\"s1\" is not a listed switch", ""},
      {"8:7", "/network/cables/1", "\"server7/nic0\" is not a NIC such as server0/nic0", ""}}},
    {"check",
     "switch_twice",
     {{"6:14", "/network", "the switch \"s0\" is listed twice", "its own name"}}},
    {"check",
     "switch_ports",
     {{"6:14", "/network", "the switch \"s0\" has 1001 cables and 36 ports", "another switch"},
      {"6:14", "/network", "the switch \"s1\" has 1000 cables and 36 ports", ""}}},
    {"check",
     "switch_named_like_a_gpu",
     {{"6:14", "/network", "\"gpu0\" has a name that a server's node may have", "rename"}}},
    {"check",
     "nic_taken_twice",
     {{"7:16", "/network/cables/0", "\"server0/nic0\" has no free port", "one cable per port"}}},
    {"check", "no_network", {{"1:1", "/servers", "3 servers and no network", "add \"network\""}}},
    {"check",
     "server_without_nic",
     {{"4:13", "/server/nodes", "a server without a compute NIC", "kind nic"}}},
    {"check",
     "no_switch_link",
     {{"6:14", "/network", "neither the network nor its switch names a link", "add \"link\""}}},
    {"check",
     "servers_twice",
     {{"3:14", "/servers", "already counts the servers", "remove \"servers\""}}},
    // jobs
    {"run",
     "two_jobs_too_many",
     {{"5:5", "/jobs/1/gpus", "3 GPUs are wanted, 2 of 8 are free", "ask for fewer"}}},
    {"run",
     "root_out_of_range",
     {{"3:15", "/workload/root", "there is no rank 8 in a group of 8", "ranks count from 0 to 7"}}},
    {"run",
     "group_size",
     {{"3:15", "/workload/group_size", "8 GPUs cannot be split into groups of 3", "must divide"}}},
    {"run",
     "unknown_algorithm",
     {{"3:15", "/workload/algorithm", "did you mean \"ring\"?", "one of "}}},
    {"run",
     "unfit_algorithm",
     {{"3:15", "/workload/algorithm", "in_switch cannot do all_to_all",
       "leave \"algorithm\" out"}}},
    {"run",
     "unknown_gpu",
     {{"3:15", "/workload/p2p/dst", "\"gpu8\" is not a GPU of the fabric", "gpu0 ... gpu7"}}},
    {"check", "zero_gpus_job", {{"3:69", "/workload/gpus", "0 is outside 1 to 10000000", ""}}},
    {"check", "nothing_to_run", {{"1:1", "", "nothing to run", "add \"workload\" or \"jobs\""}}},
    {"check",
     "two_shapes",
     {{"3:15", "/workload", "the job is more than one of", "exactly one of"}}},
    {"check", "no_size", {{"3:15", "/workload", "the key \"size\" is missing", "\"1 GiB\""}}},
    {"check", "jobs_and_workload", {{"4:15", "/workload", "\"jobs\" is given too", "keep one"}}},
    {"check",
     "endless",
     {{"3:71", "/workload/repeat", "so there is no end", "a number of iterations"}}},
    {"check",
     "repeat_zero",
     {{"3:71", "/workload/repeat", "not a number of iterations", "until-end"}}},
    {"check",
     "kind_mismatch",
     {{"3:15", "/workload/kind", "the kind does not fit", "leave it out"}}},
    // features of other parts
    {"check",
     "training",
     {{"2:11", "/workload/model", "a link is not a language model", "weft list llms"},
      {"3:96", "/workload/plan/tp", "0 is outside 1 to", ""},
      {"3:108", "/workload/size", "a training job does not take this key", "a job of its own"},
      {"3:153", "/workload/placement/order", "[tp, ep] does not name each", "leave experts out"},
      {"3:15", "/workload", "the key \"global_batch\" is missing", "sequences per step"}}},
    {"check",
     "training_keys",
     {{"3:69", "/workload/plan", "only training jobs take this key", "add \"model\""},
      {"3:87", "/workload/seq", "only training jobs", ""},
      {"3:109", "/workload/global_batch", "only training jobs", ""},
      {"3:123", "/workload/dtype", "only training jobs", ""}}},
    {"check",
     "job_kind",
     {{"3:23", "/workload/kind", "did you mean \"training\"?", "one of collective"}}},
    {"check",
     "packet",
     {{"3:15", "/fidelity", "\"packets\" is not known here, did you mean \"packet\"?", ""},
      {"4:34", "/models/packet/grain", "must be greater than zero", ""},
      {"4:50", "/models/packet/alpha", "0 is outside 0.001 to 1000", "0.001"},
      {"5:33", "/models/packet/pfc/xof", "unknown key, did you mean \"xoff\"?", ""},
      {"6:41", "/models/packet/ecn/pmax", "2 is outside 0 to 1", ""}}},
    {"check",
     "congestion",
     {{"5:34", "/models/packet/dcqcn", "the congestion control is swift, which does not read",
       "leave it out"},
      {"4:69", "/models/packet/ack_every", "swift decides by acknowledgements", "1 or more"}}},
    {"check",
     "nccl_env",
     {{"3:11", "/nccl/version", "\"3.21\" is not a release that is modelled", "2.5 to 2.30"},
      {"3:11", "/nccl/harness", "\"fast\" is not", "process-per-gpu"},
      {"3:11", "/nccl/protocol", "\"l\" is not known, did you mean \"ll\"?", "ll128"},
      {"4:26", "/nccl/env/NCCL_ALGO", "\"rinng\" is not known, did you mean \"ring\"?", ""},
      {"4:75", "/nccl/env/NCCL_P2P_LEVEL", "\"QQ\" is not a path class", "LOC, NVL"},
      {"4:89", "/nccl/env/PATH", "\"PATH\" is not a variable of NCCL", "modelled: NCCL_ALGO"},
      {"5:15", "/workload/expand", "\"expand\" is of weft's own algorithms", "leave \"nccl\" out"},
      {"5:15", "/workload/channels", "\"channels\" is", "NCCL_MAX_NCHANNELS"}}},
    {"check",
     "observe_not_yet",
     {{"3:57", "/observe/links/every", "must be greater than zero", ""},
      {"3:66", "/observe/trace", "not yet: traces", ""},
      {"3:93", "/observe/baseline", "not yet: baselines", ""}}},
    {"run",
     "observe_links",
     {{"3:24", "/observe/links/select", "\"scaleup\" is not a tier, did you mean \"scale-up\"?",
       "one of scale-up, host"}}},
    // faults
    {"run",
     "fault_target",
     {{"3:14", "/faults/0/target", "\"leaf3/up1\" is not a node or a link", "weft topo"}}},
    {"check",
     "fault_order",
     {{"3:14", "/faults/0/until", "the repair is not after the fault", "a later time"}}},
    {"run",
     "fault_reroute",
     {{"3:14", "/faults/0", "are of network links that are down", "leave them out"}}},
    {"run",
     "fault_for_good",
     {{"3:14", "/faults/0", "for good, a link inside a server", "\"until\""}}},
    {"run",
     "fault_nothing_left",
     {{"3:14", "/faults/0/factor", "nothing is left", "\"do\": \"down\""}}},
    {"check",
     "fault_factor",
     {{"3:60", "/faults/0/factor", "-0.5 is outside 0 to 1", "from 0 to 1"}}},
};

INSTANTIATE_TEST_SUITE_P(Inputs, Broken, testing::ValuesIn(kCases),
                         [](const auto& instance) { return instance.param.file; });

TEST(BrokenInputs, AllFilesOfTheFolderAreInTheTable) {
  for (const auto& entry : std::filesystem::directory_iterator(cli_test::data(""))) {
    const std::string name = entry.path().stem().string();
    if (entry.is_directory() || name == "cycle_b") continue;
    EXPECT_TRUE(std::ranges::any_of(kCases, [&](const Case& c) { return c.file == name; })) << name;
  }
}

TEST(BrokenInputs, ProblemsOfAllFilesAreToldAndTheGoodOnesAreNamed) {
  const auto outcome = weft_cli({"check", cli_test::data("wrong_unit.json"),
                                 std::string(WEFT_SOURCE_DIR) + "/scenarios/00-quickstart.json",
                                 cli_test::data("unknown_key.json")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("wrong_unit.json:3:52"));
  EXPECT_THAT(outcome.err, HasSubstr("unknown_key.json:3:16"));
  EXPECT_THAT(outcome.out, HasSubstr("00-quickstart.json: ok, scenario"));
}

TEST(BrokenInputs, CheckAnswersInJsonWithTheSameProblems) {
  const auto outcome = weft_cli({"check", "--json", cli_test::data("wrong_unit.json")});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_EQ(outcome.err, "");
  const Json json = cli_test::document(outcome);
  const Json& problem = json.find("files")->items.at(0).find("problems")->items.at(0);
  EXPECT_EQ(problem.find("line")->integer, 3);
  EXPECT_EQ(problem.find("column")->integer, 52);
  EXPECT_EQ(problem.find("pointer")->text, "/workload/size");
  EXPECT_FALSE(problem.find("cure")->text.empty());
}

}  // namespace
}  // namespace weft
