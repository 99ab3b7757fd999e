// SPDX-License-Identifier: Apache-2.0
#include "tools/python/convert.hpp"

#include <algorithm>
#include <limits>

namespace py = pybind11;

namespace weft::python {
namespace {

template <class T, class Get>
py::array_t<T> array_of(const std::vector<const Json*>& values, Get get) {
  py::array_t<T> out(static_cast<py::ssize_t>(values.size()));
  T* data = out.mutable_data();
  for (std::size_t i = 0; i < values.size(); ++i) data[i] = get(values[i]);
  return out;
}

py::object column(const std::vector<const Json*>& values) {
  using Kind = Json::Kind;
  const auto all = [&](auto test) {
    return std::ranges::all_of(values, [&](const Json* v) { return v != nullptr && test(*v); });
  };
  const auto number = [](const Json* v) {
    return v == nullptr || v->kind == Kind::null || v->is_number();
  };
  if (all([](const Json& v) { return v.kind == Kind::boolean; }))
    return array_of<bool>(values, [](const Json* v) { return v->boolean; });
  if (all([](const Json& v) { return v.kind == Kind::integer; }))
    return array_of<std::int64_t>(values, [](const Json* v) { return v->integer; });
  if (std::ranges::all_of(values, number))
    return array_of<double>(values, [](const Json* v) {
      return v != nullptr && v->is_number() ? v->number : std::numeric_limits<double>::quiet_NaN();
    });
  py::list out;
  for (const Json* v : values) out.append(v != nullptr ? to_python(*v) : py::none());
  return py::module_::import("numpy").attr("array")(out, py::arg("dtype") = "object");
}

}  // namespace

py::object to_python(const Json& json) {
  switch (json.kind) {
    case Json::Kind::null:
      return py::none();
    case Json::Kind::boolean:
      return py::bool_(json.boolean);
    case Json::Kind::integer:
      return py::int_(json.integer);
    case Json::Kind::number:
      return py::float_(json.number);
    case Json::Kind::string:
      return py::str(json.text);
    case Json::Kind::array: {
      py::list out;
      for (const Json& item : json.items) out.append(to_python(item));
      return out;
    }
    case Json::Kind::object: {
      py::dict out;
      for (const JsonMember& member : json.members)
        out[py::str(member.key)] = to_python(member.value);
      return out;
    }
  }
  return py::none();
}

py::dict columns(const std::vector<Json>& rows) {
  std::vector<std::string> names;
  for (const Json& row : rows) {
    for (const JsonMember& member : row.members) {
      if (std::ranges::find(names, member.key) == names.end()) names.push_back(member.key);
    }
  }
  py::dict out;
  std::vector<const Json*> values(rows.size());
  for (const std::string& name : names) {
    std::ranges::transform(rows, values.begin(), [&](const Json& row) { return row.find(name); });
    out[py::str(name)] = column(values);
  }
  return out;
}

}  // namespace weft::python
