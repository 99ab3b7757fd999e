// SPDX-License-Identifier: Apache-2.0
// NVLink, generations 1 to 5. One link; a bundle of links is the fabric's `count`.
//
// Raw rate, one direction of one link:
//     1: 8 lanes x 20 Gb/s       = 20 GB/s        2: 8 lanes x 25.78125 Gb/s = 25.78 GB/s
//     3: 4 lanes x 50 Gb/s       = 25 GB/s        4: 2 lanes x 100 Gb/s      = 25 GB/s
//     5: 2 lanes x 200 Gb/s      = 50 GB/s
// Generations 4 and 5 signal 1/16 more (106.25 and 212.5 Gb/s a lane) for the error correction, already taken off here.
// Efficiency:  payload / (payload + header): flits of 16 B, one of header before up to 16 of data.
// Assumes:     full packets in one direction. Requests and answers of the other direction take nothing: a copy by writes.
//
// Example:     DGX-2, six links of generation 2: 6 x 25.78125 GB/s x 256/272 = 145.59 GB/s; measured 145.57.
//              P100, one link of generation 1:   18.82; measured 18.41 (2.2 % less).
//              A100, twelve of generation 3:     282.4; measured 272 to 277 (2.5 % less).
//              H100, eighteen of generation 4 and 128 B: 400; measured 363 to 394 by pairs, H200 396 (1 to 9 % less).
//              GB200, eighteen of generation 5 and 128 B: 800; measured 770 (3.8 % less).
// The packet format of generations 3 to 5 is not public: `payload` and `header` there are fitted, the file says so.
// Reference:   Foley and Danskin, "Ultra-Performance Pascal GPU and NVLink Interconnect", IEEE Micro 37(2), 2017.
#pragma once

#include "sim/fabric/link_law.hpp"

namespace weft {

extern const LinkClassEntry kNvlinkLink;

}  // namespace weft
