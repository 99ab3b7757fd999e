// SPDX-License-Identifier: Apache-2.0
// weft._weft: the commands of weft as functions of a Python process. Everything is done by the code of the command line; what is
// here converts values, lets other Python threads run meanwhile, and looks for Ctrl-C. The package around it (weft/__init__.py)
// gives it the shape that people see.
#include <chrono>
#include <deque>
#include <exception>
#include <sstream>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "sim/core/check.hpp"
#include "sim/core/input_problems.hpp"
#include "tools/cli/cli.hpp"
#include "tools/cli/file_source.hpp"
#include "tools/cli/terminal.hpp"
#include "tools/python/convert.hpp"
#include "tools/sweep/table.hpp"

namespace py = pybind11;

namespace weft::python {
namespace {

constexpr std::chrono::milliseconds kLookForSignals{50};
constexpr int kInterrupted = 130;  // of `weft sweep`, which handles signals itself

using Documents = std::map<std::string, std::string>;

// What a call ended with; the package raises from it.
struct Answer {
  int code = kOk;
  std::string out, err;
  std::vector<LocatedProblem> problems;
};

// Runs `work` without the lock of the interpreter. A signal that Python wants to handle ends it where it shows its progress.
template <class Work>
Answer run_free(const Documents& documents, Work work) {
  Answer answer;
  std::exception_ptr interrupt;
  {
    const py::gil_scoped_release released;
    std::deque<MemoryFile> files;
    for (const auto& [path, text] : documents) files.emplace_back(path, text);
    auto last = std::chrono::steady_clock::now();
    const ProgressHook hook([&] {
      const auto now = std::chrono::steady_clock::now();
      if (now - last < kLookForSignals) return;
      last = now;
      const py::gil_scoped_acquire held;
      if (PyErr_CheckSignals() == 0) return;
      interrupt = std::make_exception_ptr(py::error_already_set());
      throw kInterrupted;
    });
    std::ostringstream err;
    Io io{.err = err};
    try {
      answer.code = work(io);
    } catch (const InputProblems& problem) {
      answer = {kBadInput, {}, problem.what(), problem.problems};
    } catch (const InputError& problem) {
      answer = {kBadInput, {}, problem.what(), {}};
    } catch (const Missing& problem) {
      answer = {kMissing, {}, problem.what(), {}};
    } catch (const LimitReached& problem) {
      answer = {kLimit, {}, problem.what(), {}};
    } catch (const std::bad_alloc&) {
      answer = {kLimit, {}, "out of memory", {}};
    } catch (const std::exception& problem) {
      answer = {kBug, {}, problem.what(), {}};
    } catch (int) {
      answer.code = kInterrupted;
    }
    answer.out = std::move(io.out);
    answer.err += err.str();
  }
  if (interrupt) std::rethrow_exception(interrupt);
  if (answer.code == kInterrupted) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw py::error_already_set();
  }
  return answer;
}

Answer call(const std::vector<std::string>& args, const Documents& documents) {
  return run_free(documents, [&](Io& io) { return run_verb(args, io); });
}

// A JSON answer. Top-level lists named in `tables` become columns.
py::dict read_answer(const std::string& text, const std::vector<std::string>& tables) {
  Diagnostics problems;
  const Json json = parse_json(text, "answer", problems);
  problems.throw_if_errors();
  py::dict out;
  for (const JsonMember& member : json.members) {
    const bool table = std::ranges::find(tables, member.key) != tables.end();
    out[py::str(member.key)] = table ? columns(member.value.items) : to_python(member.value);
  }
  return out;
}

py::object text_array(const std::vector<std::string>& texts) {
  return py::module_::import("numpy").attr("array")(texts, py::arg("dtype") = "object");
}

template <class T, class Range, class Get>
py::array_t<T> gather(const Range& range, std::size_t count, Get get) {
  py::array_t<T> out(static_cast<py::ssize_t>(count));
  T* at = out.mutable_data();
  for (std::size_t i = 0; i < count; ++i) at[i] = get(range(i));
  return out;
}

py::dict nodes_of(const Fabric& fabric) {
  const auto node = [&](std::size_t i) { return NodeId{static_cast<std::uint32_t>(i)}; };
  const std::size_t n = fabric.node_count();
  std::vector<std::string> names, kinds;
  for (std::size_t i = 0; i < n; ++i) {
    names.push_back(fabric.name(node(i)));
    kinds.push_back(write_config(fabric.node(node(i)).kind).text);
  }
  py::dict out;
  out["name"] = text_array(names);
  out["kind"] = text_array(kinds);
  out["server"] = gather<std::int64_t>(node, n, [&](NodeId id) {
    const Node& v = fabric.node(id);
    return v.kind == NodeKind::network_switch ? std::int64_t{-1} : std::int64_t{v.server.v};
  });
  out["latency_s"] = gather<double>(
      node, n, [&](NodeId id) { return static_cast<double>(fabric.node(id).latency.ps) / 1e12; });
  return out;
}

py::dict links_of(const Fabric& fabric) {
  const auto link = [&](std::size_t i) { return LinkId{static_cast<std::uint32_t>(i)}; };
  const std::size_t n = fabric.link_count();
  std::vector<std::string> names, classes, tiers;
  for (std::size_t i = 0; i < n; ++i) {
    names.push_back(fabric.name(link(i)));
    classes.push_back(write_config(fabric.link(link(i)).link_class).text);
    tiers.push_back(write_config(fabric.link(link(i)).tier).text);
  }
  py::dict out;
  out["id"] = text_array(names);
  out["from"] = gather<std::int64_t>(link, n, [&](LinkId id) { return fabric.link(id).from.v; });
  out["to"] = gather<std::int64_t>(link, n, [&](LinkId id) { return fabric.link(id).to.v; });
  out["class"] = text_array(classes);
  out["tier"] = text_array(tiers);
  constexpr double kBitsPerGb = 8e9;
  out["rate_gbs"] = gather<double>(link, n, [&](LinkId id) {
    return static_cast<double>(fabric.link(id).rate.bps) / kBitsPerGb;
  });
  out["raw_gbs"] = gather<double>(link, n, [&](LinkId id) {
    return static_cast<double>(fabric.link(id).raw.bps) / kBitsPerGb;
  });
  out["delay_s"] = gather<double>(
      link, n, [&](LinkId id) { return static_cast<double>(fabric.link(id).delay.ps) / 1e12; });
  out["cables"] = gather<std::int64_t>(link, n, [&](LinkId id) { return fabric.link(id).count; });
  return out;
}

// (answer, {"document", "nodes", "links"} or None when the answer is an error)
py::tuple load(const std::string& reference, const std::vector<std::string>& sets,
               const Documents& documents) {
  LoadedFabric loaded;
  const Answer answer = run_free(documents, [&](Io& io) {
    Diagnostics diagnostics;
    loaded = load_fabric(reference, read_settings(sets, {"set", "PTR=VALUE", "/servers=128"}),
                         diagnostics);
    io.err << diagnostics.text();
    return kOk;
  });
  if (answer.code != kOk) return py::make_tuple(answer, py::none());
  py::dict out;
  out["document"] = to_python(loaded.document);
  out["nodes"] = nodes_of(loaded.fabric);
  out["links"] = links_of(loaded.fabric);
  return py::make_tuple(answer, out);
}

// (answer, columns of the table or None when the answer is an error)
py::tuple sweep_table(const std::string& store) {
  std::vector<Json> rows;
  const Answer answer = run_free({}, [&](Io&) {
    const Manifest manifest = read_manifest(store);
    const StoreContents contents = read_store(store);
    for (const Row& row : rows_of(manifest, contents)) {
      Json& out = rows.emplace_back(Json::object());
      out.set("point", std::uint64_t{row.point});
      for (std::size_t i = 0; i < manifest.axes.size(); ++i)
        out.set(manifest.axes[i], row.asked->values[i]);
      out.set("status", row.found->ok ? "ok" : "failed");
      for (const std::string& name : manifest.outputs) {
        const Json* value = row.found->results.find(name);
        out.set(name, value != nullptr ? *value : Json{});
      }
      out.set("error", row.found->error);
    }
    return kOk;
  });
  if (answer.code != kOk) return py::make_tuple(answer, py::none());
  return py::make_tuple(answer, columns(rows));
}

}  // namespace
}  // namespace weft::python

PYBIND11_MODULE(_weft, m) {
  using namespace weft::python;
  m.doc() = "The commands of weft, for the package weft.";
  m.attr("version") = WEFT_VERSION;
  py::class_<weft::LocatedProblem>(m, "Problem",
                                   "One problem of an input, and where it is written.")
      .def_readonly("file", &weft::LocatedProblem::file)
      .def_readonly("line", &weft::LocatedProblem::line)
      .def_readonly("column", &weft::LocatedProblem::column)
      .def_readonly("warning", &weft::LocatedProblem::warning)
      .def_readonly("pointer", &weft::LocatedProblem::pointer)
      .def_readonly("fact", &weft::LocatedProblem::fact)
      .def_readonly("cure", &weft::LocatedProblem::cure)
      .def("__repr__", [](const weft::LocatedProblem& p) {
        std::ostringstream out;
        out << "<weft.Problem " << p.file << ':' << p.line << ':' << p.column << " " << p.pointer
            << ": " << p.fact << '>';
        return out.str();
      });
  py::class_<Answer>(m, "Answer", "What a command ended with.")
      .def_readonly("code", &Answer::code)
      .def_readonly("out", &Answer::out)
      .def_readonly("err", &Answer::err)
      .def_readonly("problems", &Answer::problems);
  m.def("call", &call, py::arg("args"), py::arg("documents"), "Runs one command.");
  m.def("read", &read_answer, py::arg("text"), py::arg("tables"),
        "A JSON answer as Python objects.");
  m.def("load", &load, py::arg("reference"), py::arg("sets"), py::arg("documents"),
        "Builds a fabric.");
  m.def("sweep_table", &sweep_table, py::arg("store"), "The finished points of a store.");
  m.def("set_configs_root", &weft::set_configs_root, py::arg("root"), "Where the catalogue lies.");
}
