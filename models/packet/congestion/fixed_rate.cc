// SPDX-License-Identifier: Apache-2.0
#include "models/packet/congestion/catalog.hpp"

namespace weft::packet {
namespace {

// As fast as the port: what lossless fabrics do without congestion control.
class FixedRate final : public CongestionControl {
 public:
  explicit FixedRate(const SenderFacts& facts) : rate_(facts.line_rate) {}
  Bandwidth rate(Time) override { return rate_; }

 private:
  Bandwidth rate_;
};

}  // namespace

const CongestionEntry kFixedRate{
    "none",
    "every sender at line rate; flow control of the links does the rest",
    "",
    false,
    false,
    [](const SenderFacts& facts) -> std::unique_ptr<CongestionControl> {
      return std::make_unique<FixedRate>(facts);
    }};

}  // namespace weft::packet
