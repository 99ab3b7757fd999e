// SPDX-License-Identifier: Apache-2.0
#include "sim/core/units.hpp"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(ParseTime, EveryUnitIsExact) {
  EXPECT_EQ(parse_time("7 ps"), 7_ps);
  EXPECT_EQ(parse_time("500 ns"), 500_ns);
  EXPECT_EQ(parse_time("0.5 us"), 500_ns);
  EXPECT_EQ(parse_time("1.5 ms"), 1500_us);
  EXPECT_EQ(parse_time("2 s"), 2_s);
  EXPECT_EQ(parse_time("2 min"), 120_s);
  EXPECT_EQ(parse_time("1.5 h"), 5400_s);
  EXPECT_EQ(parse_time("0 ns"), 0_ps);
}

TEST(ParseTime, DecimalsThatNoDoubleHoldsAreExact) {
  EXPECT_EQ(parse_time("9007199254740993 ps"), Time{9007199254740993});
  EXPECT_EQ(parse_time("9007199254740.993 ns"), Time{9007199254740993});
  EXPECT_EQ(parse_time("0.000000000001 s"), 1_ps);
  EXPECT_EQ(parse_time("1234.567890123 s"), Time{1234567890123000});
}

TEST(ParseTime, ExponentsMoveThePoint) {
  EXPECT_EQ(parse_time("1e3 ns"), 1_us);
  EXPECT_EQ(parse_time("1E+3 ns"), 1_us);
  EXPECT_EQ(parse_time("2500e-3 ns"), Time{2500});
  EXPECT_EQ(parse_time("1e-999999999999999999999 h"), 0_ps);
  EXPECT_EQ(parse_time("0e999999999999999999999 h"), 0_ps);
}

TEST(ParseTime, SubPicosecondDigitsRoundToNearest) {
  EXPECT_EQ(parse_time("0.0004 ns"), 0_ps);
  EXPECT_EQ(parse_time("0.0005 ns"), 1_ps);
  EXPECT_EQ(parse_time("1.2344 ns"), Time{1234});
  EXPECT_EQ(parse_time("1.2346 ns"), Time{1235});
  EXPECT_EQ(parse_time("0.33333333333333333333333333333333 ns"), Time{333});
}

TEST(ParseTime, TheLargestValueFitsAndTheNextDoesNot) {
  EXPECT_EQ(parse_time("9223372036854775807 ps"), Time{kMost});
  EXPECT_EQ(parse_time("9223372036854775808 ps"), std::nullopt);
  EXPECT_EQ(parse_time("2562.1 h"), std::nullopt);
  EXPECT_EQ(parse_time("99999999999999999999999999999999999999999 ps"), std::nullopt);
  EXPECT_EQ(parse_time("1e400 ps"), std::nullopt);
}

TEST(ParseTime, TheSpaceIsOptionalAndAlone) {
  EXPECT_EQ(parse_time("500ns"), 500_ns);
  EXPECT_EQ(parse_time("1e3ns"), 1_us);
  for (const char* text : {"500  ns", "500\tns", " 500 ns", "500 ns ", "500 n s", "5 00 ns"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(ParseTime, AnythingElseIsRefused) {
  for (const char* text :
       {"",        " ",        "ns",      "500",       "-5 ns",   "+5 ns", "nan ns",     "inf s",
        "1..5 ns", "1.5.2 ns", "5. ns",   ".5 ns",     "0x10 ns", "1e ns", "1e+ ns",     "1,5 ns",
        "5 NS",    "5 sec",    "5 ns ns", "5 ns 3 us", "5 us/s",  "5 GB",  "5 \xc2\xb5s"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(ParseBytes, DecimalAndBinaryPrefixesDiffer) {
  EXPECT_EQ(parse_bytes("256 B"), 256_B);
  EXPECT_EQ(parse_bytes("4 KB"), 4_KB);
  EXPECT_EQ(parse_bytes("4 KiB"), 4_KiB);
  EXPECT_EQ(parse_bytes("4 MiB"), 4_MiB);
  EXPECT_EQ(parse_bytes("4 MB"), 4_MB);
  EXPECT_EQ(parse_bytes("1.5 GiB"), 1536_MiB);
  EXPECT_EQ(parse_bytes("80 GB"), 80_GB);
  EXPECT_EQ(parse_bytes("2 TB"), Bytes{2'000'000'000'000});
  EXPECT_EQ(parse_bytes("2 TiB"), Bytes{2LL << 40});
  EXPECT_EQ(parse_bytes("2 PB"), Bytes{2'000'000'000'000'000});
  EXPECT_EQ(parse_bytes("8191 PiB"), Bytes{8191LL << 50});
  EXPECT_EQ(parse_bytes("8192 PiB"), std::nullopt);
}

TEST(ParseBytes, BitsAndRatesAreNotSizes) {
  for (const char* text : {"8 b", "4 Mib", "4 Mb", "4 GB/s", "4 kB", "4 M", "4 bytes"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(ParseBandwidth, BitsAndBytesAreExact) {
  EXPECT_EQ(parse_bandwidth("400 Gb/s"), 400_Gbps);
  EXPECT_EQ(parse_bandwidth("50 GB/s"), 400_Gbps);
  EXPECT_EQ(parse_bandwidth("3.2 GB/s"), Bandwidth{25'600'000'000});
  EXPECT_EQ(parse_bandwidth("25.78125 Gb/s"), Bandwidth{25'781'250'000});
  EXPECT_EQ(parse_bandwidth("1.6 Tb/s"), Bandwidth{1'600'000'000'000});
  EXPECT_EQ(parse_bandwidth("1 b/s"), Bandwidth{1});
  EXPECT_EQ(parse_bandwidth("1 Kb/s"), Bandwidth{1000});
  EXPECT_EQ(parse_bandwidth("1 Kib/s"), Bandwidth{1024});
  EXPECT_EQ(parse_bandwidth("1 GiB/s"), Bandwidth{8LL << 30});
  EXPECT_EQ(parse_bandwidth("3.35 TB/s"), Bandwidth{26'800'000'000'000});
}

TEST(ParseBandwidth, AlmostRightIsRefused) {
  for (const char* text :
       {"400", "400 Gbit", "400Gb", "400 Gbps", "400 Gb/S", "400 gb/s", "400 Gb/s/s", "400 Gb /s",
        "400 GB", "400 G/s", "-400 Gb/s", "400 Gb/s 2"}) {
    EXPECT_EQ(parse_bandwidth(text), std::nullopt) << text;
  }
}

TEST(ParseReal, ValuesAreTheNearestDouble) {
  EXPECT_EQ(parse_frequency("1.41 GHz"), Frequency{1.41e9});
  EXPECT_EQ(parse_frequency("1530 MHz"), Frequency{1.53e9});
  EXPECT_EQ(parse_frequency("32.768 kHz"), Frequency{32768});
  EXPECT_EQ(parse_flop_rate("19.5 TFLOP/s"), FlopRate{19.5e12});
  EXPECT_EQ(parse_flop_rate("0.989 PFLOP/s"), FlopRate{989e12});
  EXPECT_EQ(parse_flop_rate("312e3 GFLOP/s"), FlopRate{312e12});
  EXPECT_EQ(parse_power("700 W"), Power{700});
  EXPECT_EQ(parse_power("10.2 kW"), Power{10200});
  EXPECT_EQ(parse_power("1.2 MW"), Power{1.2e6});
  EXPECT_EQ(parse_rate("200 M/s"), Rate{200e6});
  EXPECT_EQ(parse_rate("5/s"), Rate{5});
  EXPECT_EQ(parse_rate("1.5 K/s"), Rate{1500});
}

TEST(ParseReal, WhatIsNoQuantityIsRefused) {
  EXPECT_EQ(parse_frequency("nan GHz"), std::nullopt);
  EXPECT_EQ(parse_frequency("1e999 GHz"), std::nullopt);
  EXPECT_EQ(parse_power("400 w"), std::nullopt);
  EXPECT_EQ(parse_power("-400 W"), std::nullopt);
  EXPECT_EQ(parse_power("400"), std::nullopt);
  EXPECT_EQ(parse_flop_rate("312 TFLOPS"), std::nullopt);
  EXPECT_EQ(parse_rate("200 M"), std::nullopt);
}

TEST(ToText, PeopleReadFourDigitsInTheNaturalUnit) {
  EXPECT_EQ(to_text(Time{0}), "0 ps");
  EXPECT_EQ(to_text(Time{1234567890}), "1.235 ms");
  EXPECT_EQ(to_text(500_ns), "500 ns");
  EXPECT_EQ(to_text(Time{999'949}), "999.9 ns");
  EXPECT_EQ(to_text(Time{999'999}), "1 us");
  EXPECT_EQ(to_text(7200_s), "2 h");
  EXPECT_EQ(to_text(1200_s), "20 min");
  EXPECT_EQ(to_text(Time{-1500}), "-1.5 ns");
  EXPECT_EQ(to_text(Time::never()), "never");
  EXPECT_EQ(to_text(4_MiB), "4 MiB");
  EXPECT_EQ(to_text(64_MB), "64 MB");
  EXPECT_EQ(to_text(1000_B), "1000 B");
  EXPECT_EQ(to_text(Bytes{1'234'567}), "1.177 MiB");
  EXPECT_EQ(to_text(400_Gbps), "400 Gb/s");
  EXPECT_EQ(to_text_bytes(400_Gbps), "50 GB/s");
  EXPECT_EQ(to_text(FlopRate{989e12}), "989 TFLOP/s");
  EXPECT_EQ(to_text(Power{400}), "400 W");
  EXPECT_EQ(to_text(Frequency{1.41e9}), "1.41 GHz");
  EXPECT_EQ(to_text(Rate{200e6}), "200 M/s");
}

TEST(ToExactText, ParsesBackToTheSameValue) {
  for (const std::int64_t v :
       {0LL, 1LL, 999'999LL, 1'234'567'890'123LL, 9007199254740993LL, 9223372036854775807LL}) {
    EXPECT_EQ(parse_time(to_exact_text(Time{v})), Time{v});
    EXPECT_EQ(parse_bytes(to_exact_text(Bytes{v})), Bytes{v});
    EXPECT_EQ(parse_bandwidth(to_exact_text(Bandwidth{v})), Bandwidth{v});
  }
}

TEST(ToText, ParsesBackToWithinHalfOfTheFourthDigit) {
  std::int64_t v = 1;
  for (int i = 0; i < 400 && v < kMost / 3; ++i, v += v / 10 + 1) {
    const double tolerance = 5.1e-4 * static_cast<double>(v) + 0.5;
    EXPECT_NEAR(static_cast<double>(parse_time(to_text(Time{v}))->ps), static_cast<double>(v),
                tolerance);
    EXPECT_NEAR(parse_bytes(to_text(Bytes{v}))->value(), static_cast<double>(v), tolerance);
    EXPECT_NEAR(static_cast<double>(parse_bandwidth(to_text(Bandwidth{v}))->bps),
                static_cast<double>(v), tolerance);
    EXPECT_NEAR(static_cast<double>(parse_bandwidth(to_text_bytes(Bandwidth{v}))->bps),
                static_cast<double>(v), tolerance);
  }
}

TEST(TransferTime, RoundsUpOnceAndSaturates) {
  EXPECT_EQ(transfer_time(4096_B, 450_GBps), Time{9103});
  EXPECT_EQ(transfer_time(1_B, 8_Gbps * 125), Time{8});
  EXPECT_EQ(transfer_time(0_B, 400_Gbps), 0_ps);
  EXPECT_EQ(transfer_time(1_B, Bandwidth{0}), Time::never());
  EXPECT_EQ(transfer_time(Bytes{kMost}, Bandwidth{1}), Time::never());
}

}  // namespace
}  // namespace weft
