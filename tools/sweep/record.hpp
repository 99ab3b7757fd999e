// SPDX-License-Identifier: Apache-2.0
// A record on disk is one line of JSON that carries a checksum of itself, so that a line that was cut or damaged is seen:
//
//   {"check":"9f3c0a51d2b47e86","record":{"key":"...","status":"ok","results":{"time_s":0.0039},"wall_s":0.002}}
//
// The checksum is XXH3 (64 bit) over the bytes of the value of "record".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/sweep/point.hpp"

namespace weft {

std::string to_line(const Record& record);  // ends in a newline
std::optional<Record> read_line(
    std::string_view line);  // without its newline; nothing when it is damaged

}  // namespace weft
