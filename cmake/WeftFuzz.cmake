# SPDX-License-Identifier: Apache-2.0
# Each tests/fuzz/NAME.fuzz.cc is one libFuzzer program fuzz/NAME; its seeds lie in tests/fuzz/corpus/NAME.

add_custom_target(fuzzers)
file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*.fuzz.cc")
foreach(file IN LISTS files)
  cmake_path(GET file FILENAME name)
  string(REPLACE ".fuzz.cc" "" name "${name}")
  set(target fuzz_${name})
  add_executable(${target} "${file}")
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  weft_common(${target})
  weft_warnings(${target} RELAXED)
  target_compile_definitions(${target} PRIVATE "WEFT_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  weft_link(${target} PRIVATE weft_cli weft_calibrate weft_models weft_sim fmt::fmt nlohmann_json::nlohmann_json Boost::headers)
  add_dependencies(fuzzers ${target})
endforeach()
