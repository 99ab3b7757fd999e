# SPDX-License-Identifier: Apache-2.0
# All benchmarks in one program: build/release/weft_perf --benchmark_filter=...

set(files)
foreach(dir sim models calibrate tools tests)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${dir}/*.perf.cc")
  list(APPEND files ${found})
endforeach()
if(files)
  add_executable(weft_perf ${files})
  weft_common(weft_perf)
  weft_warnings(weft_perf RELAXED)
  target_compile_definitions(weft_perf PRIVATE "WEFT_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
  weft_link(weft_perf PRIVATE weft_cli weft_calibrate weft_models weft_sim benchmark::benchmark benchmark::benchmark_main
    Boost::headers fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
endif()
