// SPDX-License-Identifier: Apache-2.0
// Output of p2pBandwidthLatencyTest of the CUDA samples: matrices with peer access off and on, one way and both ways, and
// latencies.
//
// "Bidirectional" matrices hold the sum of both directions and are halved. The diagonal is the GPU's own memory and is left out.
// Matrices that do not change when peer access is switched on say that there is none, whatever the connectivity block says: their
// data went through host memory.
//
// Facts:  tool, gpus, devices, peer_access {stated, works}, tests (see facts_of_matrices), problems.
#pragma once

#include "calibrate/import/import.hpp"

namespace weft {

extern const Importer kP2pImporter;

}  // namespace weft
