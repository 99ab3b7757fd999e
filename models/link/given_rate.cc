// SPDX-License-Identifier: Apache-2.0
#include "models/link/given_rate.hpp"

#include "models/link/facts.hpp"

namespace weft {
namespace {

LinkLaw given(const LinkSpec& spec, Bytes payload, Bytes overhead, double busy, Diagnostics& out) {
  LinkLaw law;
  law.payload = payload;
  law.overhead = overhead;
  law.busy = busy;
  if (spec.rate)
    law.raw = *spec.rate;
  else
    report_missing(spec, "rate", R"("rate": "50 GB/s", one direction)", out);
  return law;
}

}  // namespace

constinit const LinkClassEntry kC2cLink{.link_class = LinkClass::c2c,
                                        .summary = "chip to chip on one module: NVLink-C2C, C-Link",
                                        .reference = "none public; 0.9 of the rate is assumed",
                                        .evaluate = [](const LinkSpec& spec, Diagnostics& out) {
                                          return given(spec, 0_B, 0_B, 0.9, out);
                                        }};

constinit const LinkClassEntry kXgmiLink{.link_class = LinkClass::xgmi,
                                         .summary = "AMD Infinity Fabric between GPUs",
                                         .reference =
                                             "Schieffer et al., Understanding Data Movement in AMD "
                                             "Multi-GPU Systems with Infinity Fabric, 2024",
                                         .evaluate = [](const LinkSpec& spec, Diagnostics& out) {
                                           return given(spec, 64_B, 16_B, 0.95, out);
                                         }};

constinit const LinkClassEntry kHccsLink{.link_class = LinkClass::hccs,
                                         .summary = "Huawei HCCS between Ascend devices",
                                         .reference = "none public; 0.9 of the rate is assumed",
                                         .evaluate = [](const LinkSpec& spec, Diagnostics& out) {
                                           return given(spec, 0_B, 0_B, 0.9, out);
                                         }};

constinit const LinkClassEntry kUalinkLink{.link_class = LinkClass::ualink,
                                           .summary = "UALink station (projection)",
                                           .reference = "UALink 200G 1.0 Specification, 2025",
                                           .evaluate = [](const LinkSpec& spec, Diagnostics& out) {
                                             return given(spec, 256_B, 16_B, 628.0 / 640, out);
                                           }};

constinit const LinkClassEntry kSocketLink{
    .link_class = LinkClass::socket,
    .summary = "between processor sockets: QPI, UPI, xGMI, X-bus",
    .reference = "Intel, An Introduction to the Intel QuickPath Interconnect, 2009",
    .evaluate = [](const LinkSpec& spec, Diagnostics& out) {
      return given(spec, 64_B, 8_B, 0.92, out);
    }};

constinit const LinkClassEntry kMemoryLink{.link_class = LinkClass::memory,
                                           .summary = "DRAM of a socket, all channels",
                                           .reference =
                                               "McCalpin, Memory Bandwidth and Machine Balance in "
                                               "Current High Performance Computers, 1995 (STREAM)",
                                           .evaluate = [](const LinkSpec& spec, Diagnostics& out) {
                                             return given(spec, 0_B, 0_B, 0.85, out);
                                           }};

}  // namespace weft
