// SPDX-License-Identifier: Apache-2.0
// Hierarchical: inside the servers first, then across them lane by lane, then inside again. Lanes: see rails.hpp; for equal
// servers of L ranks, lane l is the rail of local rank l, and the cut across servers carries 1 / L of the data per rank.
//
//   all_reduce      direct reduce_scatter to the heads of the server; per lane a ring all_reduce; direct all_gather
//   reduce_scatter  direct reduce_scatter by lane; per lane a ring reduce_scatter; (uneven servers: heads pass on)
//   all_gather      (uneven servers: to the heads); per lane a ring all_gather; heads to the whole server
//   all_to_all      data for local index j of any server to lane j in the own server; across on the lane; (heads pass on)
//   broadcast       root scatters over its server's heads; per lane a pipelined chain; heads to the whole server
//   reduce          the same backwards
//
// Uneven servers: as many lanes as the smallest server has ranks; a server of one rank makes it a scheme of leaders. Any
//           partition works; surplus ranks cost their heads a share of the cut.
// Traffic:  across servers least possible for equal servers; a phase without traffic is left out.
// Rounds:   all_reduce 2 (M - 1) + 2, reduce_scatter and all_gather (M - 1) + 2 over M servers, all_to_all 3, broadcast and
//           reduce M - 2 + K + 2 in K chunks. `channels` changes nothing: the lanes are the channels.
// Reference: Cho, Finkler, Serrano, Kung and Hunter, "BlueConnect", IBM JRD 2019; rails for all_to_all as in NCCL's PXN.
#include "models/collectives/hierarchical.hpp"

#include "models/collectives/algorithms.hpp"

namespace weft::collectives {
namespace {

bool supports(CollectiveKind kind, const GroupShape&) {
  using enum CollectiveKind;
  return kind == all_reduce || kind == reduce_scatter || kind == all_gather || kind == all_to_all ||
         kind == broadcast || kind == reduce;
}

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  using enum CollectiveKind;
  if (request.kind == all_to_all) return build_hierarchical_all_to_all(request, shape);
  if (request.kind == broadcast || request.kind == reduce)
    return build_hierarchical_rooted(request, shape);
  return build_hierarchical_vector(request, shape);
}

}  // namespace

const AlgorithmEntry kHierarchical{
    .name = "hierarchical",
    .summary = "inside servers first, then across them rail by rail, then inside again",
    .reference = "Cho et al., BlueConnect, IBM JRD 2019",
    .supports = supports,
    .build = build};

}  // namespace weft::collectives
