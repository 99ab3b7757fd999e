// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/gzip.hpp"

#include <algorithm>
#include <limits>

#include <zlib.h>

#include "sim/core/check.hpp"

namespace weft {
namespace {

constexpr int kWindowBits = 15, kGzipHeader = 16, kMemoryLevel = 8;

}  // namespace

std::string gzip(std::string_view text) {
  z_stream stream{};
  const int ready = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                 kWindowBits + kGzipHeader, kMemoryLevel, Z_DEFAULT_STRATEGY);
  WEFT_CHECK(ready == Z_OK, ready);
  std::string out;
  std::string buffer(1U << 16, '\0');
  std::string rest(text);
  stream.next_in = reinterpret_cast<Bytef*>(rest.data());
  std::size_t left = rest.size();
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0 && left > 0) {
      stream.avail_in =
          static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
      left -= stream.avail_in;
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
    WEFT_CHECK(state == Z_OK || state == Z_STREAM_END, state);
    out.append(buffer, 0, buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace weft
