// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/nccl_graph.hpp"

#include <charconv>

#include <fmt/format.h>

#include "calibrate/import/xml.hpp"
#include "sim/core/text.hpp"

namespace weft {
namespace {

constexpr std::string_view kAlgorithms[] = {"ring", "tree", "collnet chain", "nvls",
                                            "collnet direct"};
constexpr std::string_view kPatterns[] = {"",     "balanced tree", "split tree",    "tree",
                                          "ring", "nvls",          "collnet direct"};

template <std::size_t N>
std::string_view name_at(const std::string_view (&names)[N], std::optional<std::int64_t> index) {
  if (!index || *index < 0 || *index >= static_cast<std::int64_t>(N)) return {};
  return names[static_cast<std::size_t>(*index)];
}

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

Json number_or_null(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? Json(value) : Json{};
}

class Reader {
 public:
  Reader(const XmlDocument& document, Imported& out, Diagnostics& diagnostics)
      : document_(document), out_(out), diagnostics_(diagnostics) {}

  void read() {
    const XmlElement& root = document_.elements.front();
    if (root.name == "system") {
      error(root, "this is a topology, not a channel graph", "read it with `weft import nccl-xml`");
    } else if (root.name != "graphs") {
      error(root,
            fmt::format("the root element is <{}>, channel graphs begin with <graphs>", root.name),
            "the file of NCCL_GRAPH_DUMP_FILE is needed");
    }
    if (!diagnostics_.ok()) return;
    Json graphs = Json::array();
    for (const std::size_t index : root.children) {
      const XmlElement& element = document_.elements[index];
      if (element.name == "graph") {
        graphs.push(graph(element));
      } else {
        out_.note(ImportNote::Kind::ignored, fmt::format("<{}>", element.name), element.place);
      }
    }
    out_.facts = Json::object();
    out_.facts.set("graphs", std::move(graphs));
    out_.open_questions.push_back(
        "a channel graph lists ways, not parts: import the file of NCCL_TOPO_DUMP_FILE with `weft "
        "import nccl-xml`");
  }

 private:
  void error(const XmlElement& element, std::string fact, std::string cure) {
    diagnostics_.error(element.place, {}, std::move(fact), std::move(cure));
  }

  Json graph(const XmlElement& element) {
    Json out = Json::object();
    const auto id = parse_integer(element.attribute("id"));
    const std::string_view algorithm = name_at(kAlgorithms, id);
    out.set("id", id ? Json(*id) : Json{});
    out.set("algorithm", algorithm.empty() ? Json{} : Json(algorithm));
    const std::string_view pattern =
        name_at(kPatterns, parse_integer(element.attribute("pattern")));
    out.set("pattern", pattern.empty() ? Json{} : Json(pattern));
    out.set("speed_intra_gbs", number_or_null(element.attribute("speedintra")));
    out.set("speed_inter_gbs", number_or_null(element.attribute("speedinter")));
    out.set("type_intra", element.attribute("typeintra"));
    out.set("type_inter", element.attribute("typeinter"));
    Json& channels = out.set("channels", Json::array());
    for (const std::size_t index : element.children) {
      const XmlElement& channel_element = document_.elements[index];
      if (channel_element.name == "channel") channels.push(channel(channel_element));
    }
    const auto said = parse_integer(element.attribute("nchannels"));
    const auto count = static_cast<std::int64_t>(channels.items.size());
    if (said && *said != count) {
      out_.note(ImportNote::Kind::warning,
                fmt::format("nchannels says {}, {} are listed: the file may have been cut off",
                            *said, count),
                element.place);
    }
    out_.note(ImportNote::Kind::read,
              fmt::format("{}: {} channels, {} inside the node, {} between nodes",
                          algorithm.empty() ? "graph of an unknown kind" : algorithm, count,
                          element.attribute("typeintra"), element.attribute("typeinter")));
    return out;
  }

  Json channel(const XmlElement& element) {
    Json out = Json::array();
    for (const std::size_t index : element.children) {
      const XmlElement& hop = document_.elements[index];
      const auto dev = parse_hex(hop.attribute("dev"));
      if ((hop.name != "gpu" && hop.name != "net") || !dev) {
        error(hop,
              fmt::format("<{} dev=\"{}\"> is neither a GPU nor a network device", hop.name,
                          hop.attribute("dev")),
              "dump the file again");
        continue;
      }
      out.push(fmt::format("{}{:x}", hop.name, *dev));
    }
    return out;
  }

  const XmlDocument& document_;
  Imported& out_;
  Diagnostics& diagnostics_;
};

Imported read_nccl_graph(std::string_view text, const std::string& file, const ImportOptions&,
                         Diagnostics& diagnostics) {
  Imported out;
  out.kind = "nccl-graph";
  if (const auto document = read_xml(text, file, diagnostics))
    Reader(*document, out, diagnostics).read();
  return out;
}

}  // namespace

const Importer kNcclGraphImporter{.name = "nccl-graph",
                                  .summary = "channel graphs of NCCL_GRAPH_DUMP_FILE",
                                  .reference = "NVIDIA/nccl src/graph/search.cc",
                                  .answers = {},
                                  .read = read_nccl_graph};

}  // namespace weft
