// SPDX-License-Identifier: Apache-2.0
// Which catalogue part stands for each part and link of a recognised machine, and on what grounds: the capture, an answer of
// the person, or the twin.
#pragma once

#include <string>

#include "calibrate/import/machine_parts.hpp"

namespace weft {

// A value of the server file with the text of its `sources` entry; empty: from the capture.
struct Sourced {
  Json value;
  std::string source;
};

class PartModels {
 public:
  PartModels(const Machine& machine, const ImportOptions& options, GpuChoice gpu, Twin twin);

  const GpuChoice& gpu() const { return gpu_; }
  const Twin& twin() const { return twin_; }
  const std::string& as_twin() const { return as_twin_; }  // "assumed: as dgx2 in the catalogue"
  std::string answer(const std::string& key) const;

  Sourced above_link(std::size_t part) const;  // to the bridge or socket above a part
  Sourced socket_link() const;
  Sourced nvlink() const;
  Sourced bridge_latency() const;
  std::string nvswitch() const;
  std::string nic_name(std::size_t nic) const;
  Sourced nic(std::size_t nic) const;  // with the ports and the speed of the capture

 private:
  Sourced named_nic(std::size_t nic) const;
  Json pcie_link(int generation, int width) const;
  int pcie_generation_of_gpu() const;

  const Machine& machine_;
  const ImportOptions& options_;
  GpuChoice gpu_;
  Twin twin_;
  std::string as_twin_;
};

// The name of a link that is written as a name or as {"use": NAME, "set": ...}.
std::string link_name(const Json& link);

}  // namespace weft
