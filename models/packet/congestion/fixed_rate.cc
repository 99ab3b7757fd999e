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
    .scheme = CongestionScheme::none,
    .summary = "every sender at line rate; flow control of the links does the rest",
    .reference = "",
    .signals = {},
    .state_bytes = 0,
    .make = [](const SenderFacts& facts, const CongestionSpec&)
        -> std::unique_ptr<CongestionControl> { return std::make_unique<FixedRate>(facts); },
    .parameters = [](const SenderFacts&, const CongestionSpec&) { return Json::object(); },
};

}  // namespace weft::packet
