// SPDX-License-Identifier: Apache-2.0
// Receiver-driven, as NDP (Handley et al., SIGCOMM 2017) and the pull mode of Ultra Ethernet: a window of one round trip at line
// rate, then one packet per pull. The engine does the pulling and the trimming (models/packet/trimming.cc).
#include "models/packet/congestion/scheme.hpp"

namespace weft::packet {
namespace {

class Receiver final : public CongestionControl {
 public:
  using Spec = ReceiverSpec;
  struct State {
    std::uint32_t granted, used;
  };

  static Spec resolve(const SenderFacts& facts, const CongestionSpec& given) {
    Spec spec = given.receiver.value_or(Spec{});
    fill(spec.initial_window, static_cast<std::int64_t>(whole_packets(window_of(facts))));
    return spec;
  }

  Receiver(const SenderFacts& facts, const Spec&) : line_(facts.line_rate) {}
  Bandwidth rate(Time) override { return line_; }

 private:
  Bandwidth line_;
};

}  // namespace

const CongestionEntry kReceiver{
    .scheme = CongestionScheme::receiver,
    .summary = "the receiver pulls packet by packet; switches trim what does not fit",
    .reference = "Handley et al. (NDP), SIGCOMM 2017",
    .signals = {},
    .state_bytes = sizeof(Receiver::State),
    .make = make_scheme<Receiver>,
    .parameters = parameters_of<Receiver>,
    .pulled =
        [](const SenderFacts& facts, const CongestionSpec& spec) {
          return static_cast<std::uint32_t>(*Receiver::resolve(facts, spec).initial_window);
        },
};

}  // namespace weft::packet
