// SPDX-License-Identifier: Apache-2.0
#include "sim/run/training_spec.hpp"

namespace weft {

double bytes_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return 4;
    case Precision::fp16:
    case Precision::bf16:
      return 2;
    case Precision::fp8:
      return 1;
    case Precision::mxfp8:
      return 1 + 1.0 / 32;  // one 8-bit scale for 32 numbers
    case Precision::nvfp4:
      return 0.5 + 1.0 / 16;  // one 8-bit scale for 16 numbers
  }
  return 4;
}

}  // namespace weft
