// SPDX-License-Identifier: Apache-2.0
// When what ran: the operations of a run's last iteration as slices on lanes, for the page and for trace viewers.
//
// Lanes.    A job that computes has one per class of ranks and one per kind of communication; any other has one per GPU (or
//           whatever sends), and a collective whose ranks move as one has one for its group. Slices that overlap go to lanes
//           beside each other, since viewers show one track's slices as a row.
// Bounded.  Slices of one sort that follow one another within `blur` become one, within more where there are many; beyond `most`
//           the shortest are left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/json.hpp"
#include "sim/run/run.hpp"

namespace weft {

struct Timeline {
  enum class Kind : std::uint8_t { compute, communication, latency, software };
  static std::string_view name(Kind kind);

  struct Lane {
    std::string name;
    std::uint32_t job = 0;
  };
  struct Slice {
    std::uint32_t lane = 0, label = 0;
    Kind kind = Kind::communication;
    Time start, duration;
    OpId operation, cause;
    std::int64_t bytes = 0;
  };

  std::vector<std::string> jobs, labels;
  std::vector<Lane> lanes;
  std::vector<Slice> slices;  // by lane, then time
  std::size_t left_out = 0;
};

Timeline make_timeline(const RunTrail& trail, Time blur, std::size_t most);

// Columns: lane, start_s, duration_s, kind, label.
Json to_json(const Timeline& timeline);

// Chrome's trace events: a process per job, a thread per lane, arrows from cause to effect, a counter of what is under way.
// Opens in Perfetto.
std::string chrome_trace(const Timeline& timeline);

}  // namespace weft
