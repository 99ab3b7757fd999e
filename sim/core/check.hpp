// SPDX-License-Identifier: Apache-2.0
// WEFT_CHECK(condition, values...) stops on a bug of ours and shows the values; it never guards user input (that is what
// Diagnostics is for). Always on outside the hottest loops; WEFT_DCHECK is for those and vanishes with NDEBUG.
#pragma once

#include <stdexcept>
#include <string>

namespace weft {

// Thrown by WEFT_CHECK; the command line turns it into exit code 70.
struct Bug : std::logic_error {
  using std::logic_error::logic_error;
};

// A limit was reached: time, memory, a deadlock found, a size that cannot be simulated. Exit code 4.
struct LimitReached : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {
inline std::string show(const std::string& v) { return v; }
inline std::string show(const char* v) { return v; }
template <class T>
std::string show(const T& v) {
  if constexpr (requires { std::to_string(v); }) {
    return std::to_string(v);
  } else if constexpr (requires { std::to_string(v.v); }) {
    return std::to_string(v.v);
  } else if constexpr (requires { std::to_string(v.ps); }) {
    return std::to_string(v.ps) + " ps";
  } else if constexpr (requires { std::to_string(v.count); }) {
    return std::to_string(v.count) + " B";
  } else if constexpr (requires { std::to_string(v.bps); }) {
    return std::to_string(v.bps) + " b/s";
  } else {
    return "?";
  }
}
template <class... Ts>
[[noreturn]] void fail(const char* file, int line, const char* condition, const char* names,
                       const Ts&... values) {
  std::string text =
      std::string(file) + ":" + std::to_string(line) + ": " + condition + "  (" + names + " =";
  ((text += " " + show(values)), ...);
  throw Bug(text + ")");
}
}  // namespace detail
}  // namespace weft

#define WEFT_CHECK(condition, ...)                                   \
  do {                                                               \
    if (!(condition))                                                \
      ::weft::detail::fail(__FILE__, __LINE__, #condition,           \
                           #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

#ifdef NDEBUG
#define WEFT_DCHECK(condition, ...) static_cast<void>(0)
#else
#define WEFT_DCHECK(condition, ...) WEFT_CHECK(condition, __VA_ARGS__)
#endif
