// SPDX-License-Identifier: Apache-2.0
// From JSON to a fabric: what builds is sound. Names find what they name, links and their reverses know each other, every
// resource has a capacity, and a few transfers have ways that lead from GPU to GPU.
#include "sim/fabric/fabric.hpp"

#include "models/catalog.hpp"
#include "sim/fabric/routing.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/limits.hpp"

namespace weft {
namespace {

constexpr std::size_t kMostNodes = 2'000, kMostPairs = 20'000, kMostNamesChecked = 200;

void check_fabric(const Fabric& fabric) {
  FUZZ_CHECK(!fabric.gpus().empty());
  for (std::uint32_t l = 0; l < fabric.link_count(); ++l) {
    const Link& link = fabric.link(LinkId{l});
    FUZZ_CHECK(link.from != link.to);
    FUZZ_CHECK(link.raw.bps > 0 && link.rate.bps > 0 && link.rate <= link.raw);
    FUZZ_CHECK(link.delay >= Time{0});
    const Link& back = fabric.link(link.reverse);
    FUZZ_CHECK(back.reverse == LinkId{l} && back.from == link.to && back.to == link.from);
  }
  for (const Bandwidth capacity : fabric.capacities()) FUZZ_CHECK(capacity.bps > 0);
  const auto every = [](std::size_t count) {
    return std::max<std::size_t>(1, count / kMostNamesChecked);
  };
  for (std::size_t i = 0; i < fabric.node_count(); i += every(fabric.node_count())) {
    FUZZ_CHECK(fabric.find_node(fabric.name(NodeId{i})) == NodeId{i});
  }
  for (std::size_t i = 0; i < fabric.link_count(); i += every(fabric.link_count())) {
    FUZZ_CHECK(fabric.find_link(fabric.name(LinkId{i})) == LinkId{i});
  }
}

void check_ways(const Fabric& fabric) {
  Routes routes(fabric);
  const NodeId first = fabric.gpus().front(), last = fabric.gpus().back(),
               middle = fabric.gpus()[fabric.gpus().size() / 2];
  for (const auto& [src, dst] : {std::pair{first, last}, std::pair{last, first},
                                 std::pair{first, middle}, std::pair{middle, last}}) {
    if (src == dst) continue;
    TransferOptions options;
    options.routing = fabric.routing();
    const auto transfer = routes.transfer(src, dst, options);
    if (!transfer) continue;
    FUZZ_CHECK(!transfer->legs.empty());
    FUZZ_CHECK(transfer->latency() >= Time{0});
    for (const Leg& leg : transfer->legs) {
      for (const Share& share : leg.route.shares) {
        FUZZ_CHECK(share.resource < fabric.resource_count());
        FUZZ_CHECK(share.weight > 0);
      }
    }
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  fuzz::CatalogueAndInput files{std::string(fuzz::view(data, size))};
  Diagnostics out;
  Loader loader(files, out);
  const Json document = loader.load_file("input.json");
  if (!out.ok()) return 0;
  FabricSpec spec = read_fabric(document, {}, out);
  fuzz::check_problems(out);
  if (!out.ok()) return 0;
  const fuzz::FabricSize sizes = fuzz::size_of(spec);
  if (sizes.nodes > kMostNodes || sizes.pairs > kMostPairs) return 0;
  const Fabric fabric = build_fabric(std::move(spec), link_classes(), out);
  fuzz::check_problems(out);
  if (!out.ok()) return 0;
  check_fabric(fabric);
  if (fabric.link_count() < 100'000) check_ways(fabric);
  return 0;
}
