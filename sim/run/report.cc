// SPDX-License-Identifier: Apache-2.0
#include "sim/run/report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/check.hpp"
#include "sim/core/seconds.hpp"

namespace weft {
namespace {

std::string time_text(double seconds) { return to_text(time_from_seconds(seconds)); }
std::string bytes_text(double bytes) {
  return to_text(Bytes{static_cast<std::int64_t>(bytes + 0.5)});
}

Json to_json(const JobReport& job) {
  Json out = Json::object();
  out.set("name", job.name);
  out.set("kind", job.kind);
  if (!job.collective.empty()) {
    out.set("collective", job.collective);
    out.set("algorithm", job.algorithm);
    out.set("channels", std::uint64_t{job.channels});
  }
  out.set("ranks", std::uint64_t{job.ranks});
  out.set("bytes", job.bytes);
  out.set("time_s", job.time_s);
  out.set("start_s", job.start_s);
  out.set("finish_s", job.finish_s);
  out.set("iterations", std::uint64_t{job.iterations});
  if (!job.collective.empty()) {
    out.set("algbw_gbs", job.algbw_gbs);
    out.set("busbw_gbs", job.busbw_gbs);
  } else if (job.details.is_object()) {
    for (const JsonMember& member : job.details.members) out.set(member.key, member.value);
  } else {
    out.set("mean_rate_gbs", job.mean_rate_gbs);
    out.set("least_rate_gbs", job.least_rate_gbs);
    out.set("completion_s", to_json(job.completion_s));
    out.set("slowdown", to_json(job.slowdown));
  }
  if (!job.groups.empty()) {
    Json& groups = out.set("groups", Json::array());
    for (const GroupReport& group : job.groups) {
      Json g = Json::object();
      g.set("ranks", std::uint64_t{group.ranks});
      Json& ends = g.set("gpus", Json::array());
      for (const std::string& gpu : group.gpus) ends.push(gpu);
      g.set("time_s", group.time_s);
      groups.push(std::move(g));
    }
  }
  if (job.fast_forward) {
    Json& rest = out.set("fast_forward", Json::object());
    rest.set("simulated", std::uint64_t{job.fast_forward->simulated});
    rest.set("skipped", std::uint64_t{job.fast_forward->skipped});
    rest.set("iteration_s", job.fast_forward->each.seconds());
    rest.set("bound_s", job.fast_forward->bound.seconds());
  }
  if (!job.notes.empty()) {
    Json& notes = out.set("notes", Json::array());
    for (const std::string& note : job.notes) notes.push(note);
  }
  return out;
}

// `packets`: the network counts what became of them.
Json to_json(const FlowReport& flow, bool packets) {
  Json out = Json::object();
  out.set("id", flow.id);
  out.set("src", flow.src);
  out.set("dst", flow.dst);
  out.set("bytes", flow.bytes);
  out.set("start_s", flow.start_s);
  out.set("finish_s", flow.finish_s);
  out.set("rate_gbs", flow.rate_gbs);
  out.set("slowdown", flow.slowdown);
  out.set("retransmitted_bytes", flow.seen.retransmitted);
  if (packets) {
    out.set("dropped_bytes", flow.seen.dropped);
    out.set("ecn_marks", flow.seen.marks);
    out.set("pfc_pause_s", flow.seen.paused.seconds());
  }
  return out;
}

Json to_json(const LinkReport& link) {
  Json out = Json::object();
  out.set("id", link.id);
  out.set("class", link.link_class);
  out.set("tier", link.tier);
  out.set("bytes", link.bytes);
  out.set("utilisation", link.utilisation);
  if (link.queue) {
    out.set("peak_queue_bytes", link.queue->peak.count);
    out.set("pfc_pause_s", link.queue->paused.seconds());
    out.set("ecn_marks", link.queue->marks);
    out.set("drops", link.queue->drops);
  }
  return out;
}

Json to_json(const CriticalStep& step) {
  Json out = Json::object();
  out.set("op", step.op);
  out.set("resource", step.resource);
  out.set("start_s", step.start_s);
  out.set("duration_s", step.duration_s);
  return out;
}

Json to_json(const Bottleneck& bottleneck) {
  Json out = Json::object();
  out.set("resource", bottleneck.resource);
  out.set("share", bottleneck.share);
  out.set("gain_if_infinite_s",
          bottleneck.gain_if_infinite_s ? Json(*bottleneck.gain_if_infinite_s) : Json());
  if (bottleneck.loss_if_halved_s) out.set("loss_if_halved_s", *bottleneck.loss_if_halved_s);
  return out;
}

Json to_json(const Setting& setting) {
  Json out = Json::object();
  out.set("name", setting.name);
  out.set("value", setting.value);
  out.set("source", setting.source);
  return out;
}

Json to_json(const Warning& warning) {
  Json out = Json::object();
  out.set("code", warning.code);
  out.set("text", warning.text);
  return out;
}

Json network_json(const NetworkCounters& network, bool packets) {
  Json out = Json::object();
  out.set("events", network.events);
  out.set("solves", network.solves);
  out.set("remembered", network.remembered);
  out.set("merged_flows", network.merged_flows);
  if (!packets) return out;
  out.set("packet_hops", network.packet_hops);
  out.set("control_hops", network.control_hops);
  out.set("retransmitted_packets", network.retransmitted);
  out.set("timeouts", network.timeouts);
  out.set("dropped_packets", network.dropped);
  out.set("dropped_bytes", network.dropped_bytes);
  out.set("ecn_marks", network.marks);
  out.set("pfc_pauses", network.pauses);
  out.set("pfc_pause_s", network.paused.seconds());
  out.set("credit_stalls", network.stalls);
  return out;
}

template <class T>
Json list_json(const std::vector<T>& items) {
  Json out = Json::array();
  for (const T& item : items) out.push(to_json(item));
  return out;
}

bool is_inference(const JobReport& job) { return job.kind == "inference"; }

}  // namespace

const JobReport& Report::job(std::string_view name) const {
  const auto found = std::ranges::find(jobs, name, &JobReport::name);
  WEFT_CHECK(found != jobs.end(), jobs.size());
  return *found;
}

Json to_json(const Report& report) {
  const bool packets = !report.settings.empty();
  Json out = Json::object();
  Json& head = out.set("weft", Json::object());
  head.set("version", report.version);
  head.set("schema", 1);
  out.set("scenario", report.scenario);
  if (!report.question.empty()) out.set("question", report.question);
  out.set("fabric", report.fabric);
  out.set("fidelity", report.fidelity);
  out.set("seed", report.seed);
  out.set("fingerprint", report.fingerprint);
  out.set("time_s", report.time_s);
  out.set("bound_s", report.bound_s);
  out.set("bound_by", report.bound_by);
  out.set("events", report.events);
  out.set("wall_s", report.wall_s);
  out.set("peak_rss_bytes", report.peak_rss_bytes);
  out.set("jobs", list_json(report.jobs));
  Json& flows = out.set("flows", Json::array());
  for (const FlowReport& flow : report.flows) flows.push(to_json(flow, packets));
  out.set("links", list_json(report.links));
  add_json(report.observed, out);
  Json& left_out = out.set("left_out", Json::object());
  left_out.set("flows", std::uint64_t{report.flows_cut});
  left_out.set("links", std::uint64_t{report.links_cut});
  if (!report.observed.pauses.empty()) {
    left_out.set("pauses", std::uint64_t{report.observed.pauses_cut});
    left_out.set("victims", std::uint64_t{report.observed.victims_cut});
  }
  out.set("critical_path", list_json(report.critical_path));
  out.set("bottlenecks", list_json(report.bottlenecks));
  Json& evidence = out.set("evidence", Json::object());
  evidence.set("measured", std::uint64_t{report.evidence.measured});
  evidence.set("datasheet", std::uint64_t{report.evidence.datasheet});
  evidence.set("assumed", std::uint64_t{report.evidence.assumed});
  out.set("network", network_json(report.network, packets));
  if (packets) out.set("settings", list_json(report.settings));
  out.set("warnings", list_json(report.warnings));
  out.set("effective", report.effective);
  return out;
}

std::string summary(const Report& report) {
  std::string out;
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  if (!report.scenario.empty() || !report.question.empty()) {
    line(report.question.empty()   ? report.scenario
         : report.scenario.empty() ? report.question
                                   : report.scenario + ": " + report.question);
  }
  if (report.bound_s > 0)
    line(fmt::format("time {}   bound {}   ratio {:.3f}   set by {}", time_text(report.time_s),
                     time_text(report.bound_s), report.time_s / report.bound_s, report.bound_by));
  else
    line(fmt::format("time {}   no bound: {}", time_text(report.time_s),
                     std::ranges::any_of(report.jobs, is_inference)
                         ? "collectives of inference are timed apart"
                         : "no link carries bytes in this run"));
  line(fmt::format("fabric {}   fidelity {}   seed {}   fingerprint {}", report.fabric,
                   report.fidelity, report.seed, report.fingerprint));
  line("");
  for (const JobReport& job : report.jobs) {
    if (!job.collective.empty()) {
      line(fmt::format(
          "{}: {} of {} over {} GPUs, {} with {} channel{}: {}, algbw {:.2f} GB/s, busbw {:.2f} "
          "GB/s",
          job.name, job.collective, bytes_text(job.bytes), job.ranks, job.algorithm, job.channels,
          job.channels == 1 ? "" : "s", time_text(job.time_s), job.algbw_gbs, job.busbw_gbs));
    } else if (!job.lines.empty()) {
      line(fmt::format("{}: {} on {} GPUs: {}", job.name, job.kind, job.ranks,
                       time_text(job.time_s)));
      for (const auto& [what, value] : job.lines) line(fmt::format("  {:<26} {}", what, value));
    } else {
      line(fmt::format("{}: {} of {}: {}", job.name, job.kind, bytes_text(job.bytes),
                       time_text(job.time_s)));
      if (job.completion_s.most > 0) {
        line(fmt::format(
            "  flows take {} (median), {} (90 %), {} (99 %), {} at most: {:.2f}, {:.2f}, "
            "{:.2f}, {:.2f} times as long as alone",
            time_text(job.completion_s.p50), time_text(job.completion_s.p90),
            time_text(job.completion_s.p99), time_text(job.completion_s.most), job.slowdown.p50,
            job.slowdown.p90, job.slowdown.p99, job.slowdown.most));
      }
    }
    if (job.groups.size() > 1) {
      const auto [fast, slow] = std::ranges::minmax_element(job.groups, {}, &GroupReport::time_s);
      line(fmt::format("  {} groups: fastest {}, slowest {} ({} ... {})", job.groups.size(),
                       time_text(fast->time_s), time_text(slow->time_s), slow->gpus.front(),
                       slow->gpus.back()));
    }
    for (const std::string& note : job.notes) line("  " + note);
  }
  if (!report.flows.empty()) {
    line("");
    line(fmt::format("{:<24} {:>24} {:>12} {:>12} {:>12}", "from", "to", "size", "finish", "GB/s"));
    for (const FlowReport& flow : report.flows) {
      line(fmt::format("{:<24} {:>24} {:>12} {:>12} {:>12.2f}", flow.src, flow.dst,
                       bytes_text(flow.bytes), time_text(flow.finish_s), flow.rate_gbs));
    }
    if (report.flows_cut > 0) line(fmt::format("... and {} more flows", report.flows_cut));
  }
  if (!report.bottlenecks.empty()) {
    line("");
    const bool lost = report.bottlenecks.front().loss_if_halved_s.has_value();
    line(fmt::format("{:<44} {:>8}{}{}", report.explained ? "what limits it" : "kinds of links",
                     "in use", report.explained ? " gain if infinite" : "",
                     lost ? "   loss if halved" : ""));
    for (const Bottleneck& b : report.bottlenecks) {
      line(fmt::format(
          "{:<44} {:>7.1f}%{}{}", b.resource, 100 * b.share,
          b.gain_if_infinite_s ? fmt::format(" {:>16}", time_text(*b.gain_if_infinite_s)) : "",
          lost ? fmt::format(" {:>16}", time_text(*b.loss_if_halved_s)) : ""));
    }
    const auto gains = [](const Bottleneck& b) { return b.gain_if_infinite_s.value_or(0) > 0; };
    if (report.explained && (lost || std::ranges::none_of(report.bottlenecks, gains))) {
      line(
          "no link: computing, latency, or the collective's own pace (channels, chunks in flight, "
          "reduction in the switch)");
    }
    if (!report.explained)
      line("what each costs is not known: run without --quick, or a smaller case");
  }
  if (!report.links.empty()) {
    line("");
    line(fmt::format("{:<44} {:>12} {:>12} {:>8}", "busiest links", "class", "bytes", "in use"));
    for (const LinkReport& link : report.links) {
      line(fmt::format("{:<44} {:>12} {:>12} {:>7.1f}%", link.id, link.link_class,
                       bytes_text(link.bytes), 100 * link.utilisation));
    }
    if (report.links_cut > 0) line(fmt::format("... and {} more links", report.links_cut));
  }
  if (const std::string seen = summary(report.observed); !seen.empty()) out += "\n" + seen;
  if (!report.critical_path.empty()) {
    line("");
    line("critical path");
    for (const CriticalStep& step : report.critical_path) {
      line(fmt::format("  {:>12}  {:<36} {} at {}", time_text(step.duration_s), step.op,
                       step.resource, time_text(step.start_s)));
    }
  }
  line("");
  line(fmt::format("values: {} measured, {} from datasheets, {} assumed", report.evidence.measured,
                   report.evidence.datasheet, report.evidence.assumed));
  if (!report.settings.empty()) {
    line(fmt::format(
        "\npackets: {} hops and {} of control, {} sent again, {} timeouts, {} B dropped",
        report.network.packet_hops, report.network.control_hops, report.network.retransmitted,
        report.network.timeouts, report.network.dropped_bytes));
    for (const Setting& setting : report.settings)
      line(fmt::format("  {:<24} {}  ({})", setting.name, setting.value, setting.source));
  }
  for (const Warning& warning : report.warnings)
    line(fmt::format("warning ({}): {}", warning.code, warning.text));
  // Names come from files; a terminal must not obey them.
  std::ranges::replace_if(
      out, [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == 0x7F; }, '?');
  return out;
}

}  // namespace weft
