// SPDX-License-Identifier: Apache-2.0
// What must not be fitted, or not silently: rows without a prediction, other machines, numbers that cannot be, files that are
// something else; and patches that were changed by hand.
#include <gmock/gmock.h>

#include "tests/cli/cli_test.hpp"

namespace weft {
namespace {

using cli_test::document;
using cli_test::Folder;
using cli_test::import_log;
using cli_test::number_at;
using cli_test::Outcome;
using cli_test::weft_cli;
using ::testing::HasSubstr;
using ::testing::Not;

std::string measurement(const std::string& body) {
  return R"({"weft": {"schema": 1}, "kind": "measurement", "name": "m", "tool": "weft-probe",
 )" + body +
         R"(,
 "sources": {"": "measured: by hand"}})";
}

// Copies of the size that fit a link well enough to be used beside what is refused.
constexpr const char* kGoodCopies =
    R"({"from": "gpu0", "to": "gpu1", "bytes": "256 MiB", "time": "690 us"},
 {"from": "gpu1", "to": "gpu0", "bytes": "64 MiB", "time": "180 us"})";

class Refused : public ::testing::Test {
 protected:
  Outcome fit(const std::string& body, const std::string& fabric = "hgx-h100",
              const std::vector<std::string>& more = {}) {
    std::vector<std::string> args{"calibrate", "fit", folder_.file("m.json", measurement(body)),
                                  "--fabric", fabric};
    args.insert(args.end(), more.begin(), more.end());
    return weft_cli(args);
  }
  Folder folder_;
};

TEST_F(Refused, RowsWithoutAPredictionAreLeftOut) {
  const Outcome outcome =
      fit(R"("copies": [{"from": "gpu0", "to": "gpu0", "bytes": "64 MiB", "time": "100 us"},
 )" + std::string(kGoodCopies) +
          R"(], "kernels": [{"gpu": "gpu0", "test": "matmul", "time": "9 us"},
 {"gpu": "gpu0", "test": "copy", "time": "9 us"},
 {"gpu": "gpu0", "test": "matmul", "type": "int8", "m": 4096, "n": 4096, "k": 4096, "time": "9 us"}])");
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 rows"));
  EXPECT_THAT(outcome.out, HasSubstr("a copy within one device"));
  EXPECT_THAT(outcome.out, HasSubstr("3 kernels without a size or in a type"));
}

TEST_F(Refused, NothingButRowsWithoutAPrediction) {
  const Outcome copies =
      fit(R"("copies": [{"from": "gpu0", "to": "gpu0", "bytes": "64 MiB", "time": "100 us"}])");
  EXPECT_EQ(copies.code, kBadInput);
  EXPECT_THAT(copies.err, HasSubstr("nothing in the files can be fitted"));
  const Outcome kernels = fit(R"("kernels": [{"gpu": "gpu0", "test": "triad", "time": "100 us"}])");
  EXPECT_EQ(kernels.code, kBadInput);
  EXPECT_THAT(kernels.err, HasSubstr("triad of gpu0"));
}

TEST_F(Refused, KernelsAloneCanBeFitted) {
  const Outcome outcome =
      fit(R"("kernels": [{"gpu": "gpu0", "test": "copy", "bytes": "2 GiB", "time": "720 us"},
 {"gpu": "gpu0", "test": "triad", "bytes": "3 GiB", "time": "1080 us"}])");
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("memory_share"));
}

TEST_F(Refused, DevicesThatTheFabricLacksAreToldAllAtOnceWithTheirPlaces) {
  const Outcome outcome =
      fit(R"("copies": [{"from": "gpu0", "to": "gpu9", "bytes": "1 MiB", "time": "20 us"},
 {"from": "nix", "to": "gpu1", "bytes": "1 MiB", "time": "20 us"}],
 "kernels": [{"gpu": "gpu77", "test": "copy", "bytes": "1 GiB", "time": "100 us"}])");
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err,
              HasSubstr("m.json:2:36: error: /copies/0/to: the fabric has no \"gpu9\""));
  EXPECT_THAT(outcome.err, HasSubstr("m.json:3:11: error: /copies/1/from"));
  EXPECT_THAT(outcome.err, HasSubstr("m.json:4:22: error: /kernels/0/gpu"));
  EXPECT_THAT(outcome.err, HasSubstr("it has gpu0, gpu1"));
}

TEST_F(Refused, SizesBeyondAnyMemory) {
  for (const char* bytes : {"8000000000000000000 B", "1025 GiB"}) {
    const Outcome outcome = fit(R"("copies": [{"from": "gpu0", "to": "gpu1", "bytes": ")" +
                                std::string(bytes) + R"(", "time": "200 us"}],
 "runs": [{"collective": "all_reduce", "ranks": 8, "samples":
  [{"bytes": ")" + bytes + R"(", "time": "2 us", "algbw": "1 GB/s", "busbw": "1 GB/s"}]}])");
    EXPECT_EQ(outcome.code, kBadInput) << bytes;
    EXPECT_THAT(outcome.err, HasSubstr("m.json:2:53: error: /copies/0/bytes"));
    EXPECT_THAT(outcome.err, HasSubstr("error: /runs/0/samples/0/bytes"));
  }
}

TEST_F(Refused, MoreRanksOrServersThanThereAre) {
  const auto run = [](int ranks) {
    return R"("runs": [{"collective": "all_reduce", "ranks": )" + std::to_string(ranks) +
           R"(, "samples":
  [{"bytes": "1 MiB", "time": "50 us", "algbw": "1 GB/s", "busbw": "1 GB/s"}]}])";
  };
  const Outcome many = fit(run(16));
  EXPECT_EQ(many.code, kBadInput);
  EXPECT_THAT(many.err, HasSubstr("m.json:2:11: error: /runs/0: 16 ranks on 2 servers"));
  EXPECT_EQ(fit(run(10'000'000), "hgx-h100+ib-ndr").code, kBadInput);
  const Outcome packed = fit(run(9), "hgx-h100+ib-ndr", {"--nodes", "1"});
  EXPECT_EQ(packed.code, kBadInput);
  EXPECT_THAT(packed.err, HasSubstr("a server has 8 GPUs"));
}

TEST_F(Refused, OtherGpusThanTheFabricsUnlessTheyAreMeant) {
  const std::string body = R"("hosts": [{"gpus": [{"device": 0, "product": "NVIDIA A100-SXM4-80GB"},
  {"device": 1, "product": "NVIDIA A100-SXM4-80GB"}]}],
 "copies": [)" + std::string(kGoodCopies) +
                           "]";
  const Outcome refused = fit(body);
  EXPECT_EQ(refused.code, kBadInput);
  EXPECT_THAT(refused.err, HasSubstr("m.json:2:"));
  EXPECT_THAT(refused.err, HasSubstr("/hosts/0/gpus/0/product"));
  EXPECT_THAT(refused.err, HasSubstr("h100-sxm5"));
  EXPECT_THAT(refused.err, HasSubstr("--other-gpus"));
  const Outcome meant = fit(body, "hgx-h100", {"--other-gpus"});
  EXPECT_EQ(meant.code, kOk) << meant.err;
  EXPECT_THAT(meant.out, HasSubstr("A100-SXM4-80GB"));
  EXPECT_EQ(fit(body, "hgx-a100").code, kOk);
  // A log of nccl-tests names them, too.
  const Outcome log = weft_cli(
      {"calibrate", "fit", import_log("h100-8gpu-allreduce-nvls.log"), "--fabric", "hgx-a100"});
  EXPECT_EQ(log.code, kBadInput);
  EXPECT_THAT(log.err, HasSubstr("H100 80GB HBM3"));
}

TEST_F(Refused, FilesThatAreNoMeasurements) {
  const auto said = [&](const char* verb, const std::string& text) {
    const std::string path = folder_.file("x.json", text);
    return verb == std::string("fit") ? weft_cli({"calibrate", "fit", path, "--fabric", "hgx-h100"})
                                      : weft_cli({"calibrate", verb, path});
  };
  for (const char* verb : {"fit", "inspect"}) {
    const Outcome other = said(verb, R"({"weft": {"schema": 1}, "kind": "server", "name": "x"})");
    EXPECT_EQ(other.code, kBadInput);
    EXPECT_THAT(other.err, HasSubstr("x.json:1:33: error: /kind: a file of kind \"server\""));
    const Outcome any = said(verb, R"({"a": 1})");
    EXPECT_EQ(any.code, kBadInput);
    EXPECT_THAT(any.err, HasSubstr("x.json:1:1: error: this JSON is neither a measurement"));
    EXPECT_THAT(any.err, Not(HasSubstr("results")));
  }
}

TEST_F(Refused, OneFileGivenTwiceCountsOnce) {
  const std::string log = import_log("rtx4090-4gpu-p2p-driver-allreduce.log");
  const auto patch = [&](const std::vector<std::string>& files) {
    std::vector<std::string> args{"calibrate",      "fit",    "--fabric",
                                  "pcie-rtx4090x8", "--set",  "/peer_access/pcie=all",
                                  "--json",         "--date", "2026-01-01"};
    args.insert(args.end(), files.begin(), files.end());
    return weft_cli(args);
  };
  const Outcome once = patch({log}), twice = patch({log, log});
  ASSERT_EQ(once.code, kOk) << once.err;
  EXPECT_EQ(once.out, twice.out);
  const Outcome said = weft_cli({"calibrate", "fit", log, log, "--fabric", "pcie-rtx4090x8",
                                 "--set", "/peer_access/pcie=all"});
  EXPECT_THAT(said.out, HasSubstr("42 of its samples are in a file before it"));
}

TEST_F(Refused, LogsOfSeveralMachinesInOne) {
  const std::string a = import_log("rtx4090-4gpu-p2p-driver-allreduce.log"),
                    b = import_log("h100-8gpu-allreduce-nvls.log");
  const std::string merged = folder_.path("all.json");
  const Outcome merge = weft_cli({"calibrate", "merge", a, b, "-o", merged});
  EXPECT_EQ(merge.code, kBadInput);
  EXPECT_THAT(merge.err, HasSubstr("h100-8gpu-allreduce-nvls.log: error: "));
  EXPECT_THAT(merge.err, HasSubstr("is of another machine"));
  EXPECT_FALSE(std::filesystem::exists(merged));
  const Outcome fitted =
      weft_cli({"calibrate", "fit", a, b, "--fabric", "hgx-h100", "--other-gpus"});
  EXPECT_EQ(fitted.code, kBadInput);
  EXPECT_THAT(fitted.err, HasSubstr("is of another machine"));
}

// A size at which bandwidth is taken away and given back is no regime of the machine.
TEST_F(Refused, DentsAreToldAndNotFitted) {
  std::string samples;
  for (const auto& [bytes, us] : {std::pair{"256 MiB", 1100},
                                  {"512 MiB", 2150},
                                  {"1 GiB", 6200},
                                  {"2 GiB", 8500},
                                  {"4 GiB", 17000}})
    samples += std::string(samples.empty() ? "" : ",\n  ") + R"({"bytes": ")" + bytes +
               R"(", "time": ")" + std::to_string(us) +
               R"( us", "algbw": "1 GB/s", "busbw": "1.75 GB/s"})";
  const Outcome outcome =
      fit(R"("runs": [{"collective": "all_reduce", "ranks": 8, "samples": [)" + samples + "]}]");
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("1 GiB is not fitted: bandwidth falls to 69 % of that of 512 MiB"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("2 GiB is not fitted")));
}

TEST_F(Refused, RanksThatContradictTheirGpus) {
  const Outcome outcome = fit(
      R"("runs": [{"collective": "all_reduce", "ranks": 8, "gpus": ["gpu0", "gpu1", "gpu0", "cpu0"],
 "samples": [{"bytes": "1 MiB", "time": "50 us", "algbw": "1 GB/s", "busbw": "1 GB/s"}]}],
 "hosts": [{"gpus": [{"device": 0}, {"device": 0}]}, {"gpus": [{"device": 1}]}],
 "kernels": [{"gpu": "cpu0", "test": "copy", "bytes": "1 GiB", "time": "400 us"}])");
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("m.json:2:60: error: /runs/0/gpus: 4 are named, and there "
                                     "were 8 ranks"));
  EXPECT_THAT(outcome.err, HasSubstr("/runs/0/gpus/2: \"gpu0\" is there twice"));
  EXPECT_THAT(outcome.err, HasSubstr("/runs/0/gpus/3: \"cpu0\" is no GPU"));
  EXPECT_THAT(outcome.err, HasSubstr("m.json:4:48: error: /hosts/0/gpus/1/device: device 0 is "
                                     "there twice"));
  EXPECT_THAT(outcome.err, HasSubstr("/hosts/1/server: server 0 is there twice"));
  EXPECT_THAT(outcome.err, HasSubstr("m.json:5:22: error: /kernels/0/gpu: \"cpu0\" is no GPU"));
}

TEST_F(Refused, ServersBeyondAnyFabric) {
  const Outcome outcome = fit(R"("hosts": [{"server": 999999, "gpus": [{"device": 0}]}],
 "copies": [{"from": "server999999/gpu0", "to": "gpu1", "bytes": "64 MiB", "time": "180 us"}])",
                              "hgx-h100+ib-ndr");
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("m.json:2:23: error: /hosts/0/server: server 999999"));
}

// A patch with a key that the fabric does not have: where the patch says it.
TEST_F(Refused, PatchesOfKeysThatThereAreNot) {
  const std::string patch = folder_.file("odd.json", R"({"weft": {"schema": 1}, "kind": "patch",
 "name": "odd", "summary": "s", "use": "hgx-h100",
 "set": {"/nope": 3}, "sources": {"": "assumed: by hand"}})");
  const Outcome outcome = weft_cli({"topo", patch});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("odd.json:3:19: error: /nope: unknown key"));
}

TEST_F(Refused, AlgorithmsThatNcclDoesNotHave) {
  const Outcome outcome = fit(
      R"("runs": [{"collective": "all_reduce", "ranks": 8, "algorithm": "magic", "protocol": "ll",
 "samples": [{"bytes": "1 MiB", "time": "50 us", "algbw": "1 GB/s", "busbw": "1 GB/s"}]}])");
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("m.json:2:65: error: /runs/0/algorithm: NCCL_ALGO=magic: "));
}

TEST_F(Refused, DatesThatAreNone) {
  for (const char* date : {"yesterday", "2026-02-29", "26-02-01", "2026-1-1", "2026-01-01x"}) {
    const Outcome outcome =
        fit(R"("copies": [)" + std::string(kGoodCopies) + "]", "hgx-h100", {"--date", date});
    EXPECT_EQ(outcome.code, kBadInput) << date;
    EXPECT_THAT(outcome.err, HasSubstr("YYYY-MM-DD")) << date;
  }
}

// Of each kind: a row faster than wires, and memory, can be.
TEST_F(Refused, RowsFasterThanThePartsCanBeAreTold) {
  const Outcome sound = fit(R"("copies": [)" + std::string(kGoodCopies) + R"(,
 {"from": "cpu0", "to": "gpu0", "bytes": "64 MiB", "time": "1220 us"}],
 "kernels": [{"gpu": "gpu0", "test": "copy", "bytes": "2 GiB", "time": "720 us"}])");
  ASSERT_EQ(sound.code, kOk) << sound.err;
  EXPECT_THAT(sound.out, Not(HasSubstr("faster than this fabric can be")));
  const Outcome outcome = fit(R"("copies": [)" + std::string(kGoodCopies) + R"(,
 {"from": "gpu2", "to": "gpu3", "bytes": "256 MiB", "time": "300 us"},
 {"from": "cpu0", "to": "gpu0", "bytes": "64 MiB", "time": "500 us"}],
 "kernels": [{"gpu": "gpu0", "test": "copy", "bytes": "2 GiB", "time": "300 us"},
 {"gpu": "gpu0", "test": "triad", "bytes": "3 GiB", "time": "1080 us"}])");
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 copy rows are faster than this fabric can be"));
  EXPECT_THAT(outcome.out,
              HasSubstr("1 kernel row is faster than this fabric can be: copy of 2 GiB"));
}

TEST_F(Refused, PlacesThatCannotBeWrittenBeforeAnythingIsComputed) {
  const std::string box =
      folder_.file("m.json", measurement(R"("copies": [)" + std::string(kGoodCopies) + "]"));
  const std::string file = folder_.file("file", "x");
  const std::string broken = folder_.file("broken.json", "{");
  // What would be computed is broken: who looks at it first says so.
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"calibrate", "fit", broken, "--fabric", "hgx-h100", "-o", folder_.path("no/p.json")},
           {"calibrate", "fit", broken, "--fabric", "hgx-h100", "--page", file + "/p.html"},
           {"calibrate", "check", broken, "--fabric", "hgx-h100", "--page", folder_.path("")},
           {"calibrate", "merge", broken, "-o", folder_.path("no/m.json")},
           {"run", broken, "--out", file + "/out"},
           {"sweep", broken, "--out", file + "/store"},
           {"validate", "--dataset", broken, "--page", file + "/page.md"}}) {
    const Outcome outcome = weft_cli(args);
    EXPECT_EQ(outcome.code, kBadInput) << args[1];
    EXPECT_THAT(outcome.err, Not(HasSubstr("broken.json:1"))) << args[0] << " " << args[1];
    EXPECT_THAT(outcome.err, HasSubstr("folder")) << args[0] << " " << args[1];
  }
  // Nothing is left of the trial.
  EXPECT_EQ(weft_cli({"run", broken, "--out", folder_.path("deep/er")}).code, kBadInput);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("deep")));
}

TEST_F(Refused, HoldOutWithoutTables) {
  const std::string box =
      folder_.file("m.json", measurement(R"("copies": [)" + std::string(kGoodCopies) + "]"));
  const Outcome outcome = weft_cli({"calibrate", "check", box, "--fabric", "hgx-h100"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("three sizes of a kind"));
  for (const char* what : {"groups", "collectives"}) {
    const Outcome other =
        weft_cli({"calibrate", "check", box, "--fabric", "hgx-h100", "--leave-out", what});
    EXPECT_EQ(other.code, kBadInput);
    EXPECT_THAT(other.err,
                HasSubstr("tables of collectives are left out, and the files hold none"));
  }
}

TEST_F(Refused, AFileWhoseRunHasNotEndedIsTold) {
  const std::string box =
      folder_.file("m.json", measurement(R"("copies": [)" + std::string(kGoodCopies) + "]"));
  EXPECT_EQ(weft_cli({"calibrate", "inspect", box}).err, "");
  folder_.file("m.json.journal", "{}\n");
  const Outcome inspected = weft_cli({"calibrate", "inspect", box});
  EXPECT_EQ(inspected.code, kOk);
  EXPECT_THAT(inspected.err, HasSubstr("what it lacks is in"));
  EXPECT_THAT(weft_cli({"calibrate", "fit", box, "--fabric", "hgx-h100"}).out,
              HasSubstr("m.json.journal"));
  EXPECT_THAT(weft_cli({"calibrate", "fit", box, "--fabric", "hgx-h100", "--json"}).err,
              HasSubstr("m.json.journal"));
}

// Beside collectives a product takes longer: said with its figure, and not counted twice.
TEST_F(Refused, WhatStepsAlreadyHoldIsToldAndNotSet) {
  const Outcome outcome = fit(R"("copies": [)" + std::string(kGoodCopies) + R"(],
 "overlaps": [{"gpu": "gpu0", "type": "bf16", "m": 8192, "n": 8192, "k": 8192, "ranks": 8,
  "collective": "all_reduce", "bytes": "64 MiB", "kernel_alone": "1500 us",
  "collective_alone": "300 us", "kernel": "1800 us", "collective_time": "400 us"}])",
                              "hgx-h100", {"-o", folder_.path("p.json")});
  ASSERT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("take 1.2 times what they take alone"));
  EXPECT_THAT(outcome.out, HasSubstr("would count twice"));
  std::ifstream patch(folder_.path("p.json"));
  const std::string text(std::istreambuf_iterator<char>(patch), {});
  EXPECT_THAT(text, Not(HasSubstr("beside_collectives")));
}

TEST_F(Refused, KeptSizesThatWereNotMeasured) {
  const auto check = [](const std::string& keep) {
    return weft_cli({"calibrate", "check", import_log("rtx4090-4gpu-p2p-driver-allreduce.log"),
                     "--fabric", "pcie-rtx4090x8", "--set", "/peer_access/pcie=all", "--keep",
                     keep});
  };
  EXPECT_EQ(check("1KiB,1MiB,1GiB").code, kOk);
  const Outcome outcome = check("1MiB,3MiB,2GiB");
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("--keep: 3 MiB was not measured"));
  EXPECT_THAT(outcome.err, HasSubstr("--keep: 2 GiB was not measured"));
  EXPECT_THAT(outcome.err, HasSubstr("one of 1 KiB, 2 KiB"));
}

TEST_F(Refused, KeepIsOfSizes) {
  const Outcome outcome =
      weft_cli({"calibrate", "check", import_log("rtx4090-4gpu-p2p-driver-allreduce.log"),
                "--fabric", "pcie-rtx4090x8", "--leave-out", "groups", "--keep", "1MiB"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("--keep"));
}

// ---- patches

class Patch : public Refused {
 protected:
  void SetUp() override {
    path_ = folder_.path("node.json");
    const Outcome written =
        weft_cli({"calibrate", "fit", import_log("rtx4090-4gpu-p2p-driver-allreduce.log"),
                  "--fabric", "pcie-rtx4090x8", "--set", "/peer_access/pcie=all", "-o", path_});
    ASSERT_EQ(written.code, kOk) << written.err;
    std::ifstream file(path_);
    text_.assign(std::istreambuf_iterator<char>(file), {});
  }
  // A copy in which the first `from` after `mark` is `to`.
  std::string changed(const std::string& mark, const std::string& from, const std::string& to) {
    std::string text = text_;
    const std::size_t at = text.find(from, text.find(mark));
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return folder_.file("changed.json", text);
  }
  std::string scenario(const std::string& name, const std::string& fabric) {
    return folder_.file(name, R"({"weft": {"schema": 1}, "name": "s", "question": "how long?",
 "fabric": )" + fabric + R"(, "nccl": {},
 "jobs": [{"name": "a", "collective": "all_reduce", "size": "64 MiB", "gpus": 4}]})");
  }
  std::string path_, text_;
};

TEST_F(Patch, IsCheckedWhereItIsRead) {
  EXPECT_EQ(weft_cli({"check", path_}).code, kOk);
  struct Wrong {
    const char *mark, *from, *to, *said;
  };
  for (const Wrong& wrong :
       {Wrong{"\"calibration\"", "\"scale\": ", "\"scale\": -", "/scale"},
        {"\"parameters\"", "\"prior_sd\": ", "\"prior_sd\": -", "/prior_sd"},
        {"\"parameters\"", "\"low\": ", "\"low\": 9e9, \"x\": ", "x"},
        {"\"parameters\"", "\"unit\": \"", "\"unit\": \"odd ", "one of time, bandwidth, share"},
        {"\"parameters\"", "\"state\": \"", "\"state\": \"odd ",
         "one of determined, weak, undetermined"},
        {"\"parameters\"", "\"/", "\"odd/", "is no JSON pointer"},
        {"\"covariance\"", "[0.", "[-0.", "/calibration/covariance/0/0"},
        {"\"residuals\"", "\"sd\": ", "\"sd\": -", "/residuals/0/sd"},
        {"\"covariance\"", "[0.", "[1, 0.", "/calibration/covariance"}}) {
    const Outcome outcome = weft_cli({"check", changed(wrong.mark, wrong.from, wrong.to)});
    EXPECT_EQ(outcome.code, kBadInput) << wrong.to;
    EXPECT_THAT(outcome.err + outcome.out, HasSubstr(wrong.said)) << wrong.to;
  }
}

TEST_F(Patch, ValuesThatWereChangedByHandHaveNoInterval) {
  const std::string path = changed("\"set\": {", " us\"", " ms\"");
  const Outcome outcome = weft_cli({"nccl-tests", "all_reduce_perf", "--fabric", path, "-g", "4",
                                    "-b", "1M", "-e", "1M", "--intervals"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("that was fitted"));
  EXPECT_THAT(outcome.err, HasSubstr("changed.json:"));
}

TEST_F(Patch, OfAnotherFabricHasNoInterval) {
  const std::string path = changed("\"use\"", "pcie-rtx4090x8", "dgx2");
  const Outcome outcome =
      weft_cli({"nccl-tests", "all_reduce_perf", "--fabric", path, "--intervals"});
  EXPECT_EQ(outcome.code, kBadInput);
}

TEST_F(Patch, IntervalsNeedTheCalibratedFabric) {
  const std::string calibrated = scenario("a.json", "\"node.json\"");
  EXPECT_EQ(weft_cli({"run", calibrated, "--intervals"}).code, kOk);
  for (const char* set : {"/fabric=pcie-rtx4090x8", "/fabric/use=pcie-rtx4090x8",
                          R"(/fabric={"use": "pcie-rtx4090x8"})"}) {
    const Outcome other = weft_cli({"run", calibrated, "--intervals", "--set", set});
    EXPECT_EQ(other.code, kBadInput) << set;
    EXPECT_THAT(other.err, HasSubstr("weft calibrate fit")) << set;
  }
  // The other way round: a patch that the command line names.
  const std::string plain = scenario("b.json", "\"pcie-rtx4090x8\"");
  EXPECT_EQ(weft_cli({"run", plain, "--intervals"}).code, kBadInput);
  EXPECT_EQ(weft_cli({"run", plain, "--intervals", "--set", "/fabric=" + path_}).code, kOk);
  const Outcome replaced =
      weft_cli({"run", calibrated, "--intervals", "--set", "/fabric/nodes/0/model=rtx-4090"});
  EXPECT_EQ(replaced.code, kBadInput);
  EXPECT_THAT(replaced.err, HasSubstr("that was calibrated"));
}

// One interval, whoever asks; what is set is known and takes nothing from the others.
TEST_F(Patch, RunAndNcclTestsGiveOneInterval) {
  const std::string calibrated = scenario("a.json", "\"node.json\"");
  const auto width = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args{"run", calibrated, "--intervals", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const Json report = document(weft_cli(args));
    return number_at(report, {"intervals_90", "a", "high"}) /
           number_at(report, {"intervals_90", "a", "low"});
  };
  const Json rows = document(weft_cli({"nccl-tests", "all_reduce_perf", "--fabric", path_, "-g",
                                       "4", "-b", "64M", "-e", "64M", "--intervals", "--json"}));
  EXPECT_NEAR(number_at(rows, {"rows", "0", "time_us_high"}) /
                  number_at(rows, {"rows", "0", "time_us_low"}),
              width({}), 0.02);
  EXPECT_LE(width({"--set", R"(/fabric/links/0/link/efficiency=0.9)"}), width({}) + 1e-9);
}

TEST_F(Patch, SuggestionsAreForTheScenariosFabric) {
  const std::string calibrated = scenario("a.json", "\"node.json\"");
  EXPECT_EQ(weft_cli({"calibrate", "suggest", calibrated, "--fabric", path_}).code, kOk);
  const Outcome other = weft_cli({"calibrate", "suggest", calibrated, "--fabric", "hgx-a100"});
  EXPECT_EQ(other.code, kBadInput);
  EXPECT_THAT(other.err, HasSubstr("a.json: error: /fabric: the scenario runs on"));
  // The same parts, otherwise joined or otherwise many.
  const std::string rails = scenario("r.json", R"("hgx-h100+ib-ndr")");
  EXPECT_EQ(weft_cli({"calibrate", "suggest", rails, "--fabric", "hgx-h100"}).code, kBadInput);
  const std::string replaced =
      scenario("s.json", R"({"use": "pcie-rtx4090x8", "set": {"/peer_access/pcie": "all"}})");
  EXPECT_EQ(weft_cli({"calibrate", "suggest", replaced, "--fabric", "pcie-rtx4090x8"}).code, kOk);
}

// What is asked for is how sure the time is that `weft run --intervals` gives.
TEST_F(Patch, SuggestionsBeginWithTheIntervalOfARun) {
  const std::string calibrated = scenario("a.json", "\"node.json\"");
  const Json run = document(weft_cli({"run", calibrated, "--intervals", "--json"}));
  const Json answer =
      document(weft_cli({"calibrate", "suggest", calibrated, "--fabric", path_, "--json"}));
  for (const char* end : {"low", "high"}) {
    EXPECT_NEAR(
        number_at(answer, {"interval_90", end}) / number_at(run, {"intervals_90", "time", end}), 1,
        1e-3);
  }
  for (const Json& one : answer.find("measurements")->items)
    EXPECT_GE(number_at(one, {"interval_90_after", "low"}),
              number_at(answer, {"interval_90", "low"}) - 1e-12);
}

}  // namespace
}  // namespace weft
