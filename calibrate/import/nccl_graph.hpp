// SPDX-License-Identifier: Apache-2.0
// NCCL's channel graphs (NCCL_GRAPH_DUMP_FILE): which way each channel of rings and trees goes. No machine can be made of
// them, but they say what NCCL chose.
//
//   <graphs version="1">
//     <graph id="0" pattern="4" nchannels="2" speedintra="12" speedinter="12" typeintra="SYS" typeinter="PIX" ...>
//       <channel> <net dev="0"/> <gpu dev="0"/> <gpu dev="1"/> <net dev="0"/> </channel>
//
// Every dev is hexadecimal. Facts: {graphs: [{id, algorithm, pattern, speed_intra_gbs, speed_inter_gbs, type_intra, type_inter,
// channels: [[names]]}]}.
// Reference: NVIDIA/nccl src/graph/search.cc (xml of graphs), src/include/graph.h (patterns).
#pragma once

#include "calibrate/import/import.hpp"

namespace weft {

extern const Importer kNcclGraphImporter;

}  // namespace weft
