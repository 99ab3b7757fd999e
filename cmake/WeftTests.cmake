# SPDX-License-Identifier: Apache-2.0
# One GoogleTest program per folder. Tests run in the source tree's root and know it as WEFT_SOURCE_DIR.

include(GoogleTest)
set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST)

add_custom_target(unit_tests)

# weft_test_program(NAME LABEL FILE...): label "unit" joins the target unit_tests.
function(weft_test_program name label)
  if(NOT ARGN)
    return()
  endif()
  add_executable(${name} ${ARGN})
  weft_common(${name})
  weft_warnings(${name} RELAXED)
  target_compile_definitions(${name} PRIVATE "WEFT_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
  weft_link(${name} PRIVATE weft_test_support weft_cli weft_calibrate weft_models weft_sim GTest::gmock GTest::gtest_main
    rapidcheck_gtest Boost::headers Eigen3::Eigen fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
  gtest_discover_tests(${name}
    TEST_PREFIX "${name}/"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    DISCOVERY_TIMEOUT 120
    PROPERTIES TIMEOUT 600 LABELS ${label})
  if(label STREQUAL "unit")
    add_dependencies(unit_tests ${name})
  endif()
endfunction()

# Helpers that several test folders share.
file(GLOB support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cc")
list(FILTER support EXCLUDE REGEX "${WEFT_TESTLIKE}")
if(support)
  add_library(weft_test_support STATIC ${support})
  weft_common(weft_test_support)
  weft_warnings(weft_test_support RELAXED)
  target_compile_definitions(weft_test_support PRIVATE "WEFT_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
  weft_link(weft_test_support PUBLIC weft_cli weft_calibrate weft_models weft_sim GTest::gmock GTest::gtest rapidcheck_gtest
    fmt::fmt nlohmann_json::nlohmann_json)
endif()

# Unit tests stand beside the code they prove.
foreach(pair sim:sim models:models calibrate:calibrate cli:tools)
  string(REGEX MATCH "^([^:]+):(.+)$" unused "${pair}")
  set(name ${CMAKE_MATCH_1})
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_2}/*.test.cc")
  weft_test_program(${name}_tests unit ${files})
endforeach()

# tests/NAME: everything that spans modules. Other .cc files of the folder are its helpers.
file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*.test.cc")
set(folders)
foreach(file IN LISTS files)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/tests" OUTPUT_VARIABLE relative)
  if(relative MATCHES "^([^/]+)/")
    list(APPEND folders ${CMAKE_MATCH_1})
  endif()
endforeach()
list(REMOVE_DUPLICATES folders)
foreach(folder IN LISTS folders)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${folder}/*.cc")
  list(FILTER files EXCLUDE REGEX "\\.(perf|fuzz)\\.cc$")
  if(folder STREQUAL "support")
    list(FILTER files INCLUDE REGEX "\\.test\\.cc$")
  endif()
  weft_test_program(tests_${folder} ${folder} ${files})
endforeach()

# These run the program.
if(TARGET tests_probe AND TARGET weft-probe)
  add_dependencies(tests_probe weft-probe)
  target_compile_definitions(tests_probe PRIVATE "WEFT_PROBE=\"$<TARGET_FILE:weft-probe>\"")
endif()
# The host side of the CUDA backend, on a fake of the runtime and of the libraries.
if(TARGET tests_probe_cuda AND WEFT_PROBE_CUDA)
  get_target_property(sources weft_probe_cuda SOURCES)
  list(FILTER sources EXCLUDE REGEX "/libraries\\.cc$")
  target_sources(tests_probe_cuda PRIVATE ${sources})
  target_compile_definitions(tests_probe_cuda PRIVATE WEFT_FAKE_CUDA)
  target_include_directories(tests_probe_cuda SYSTEM PRIVATE "${WEFT_NCCL_INCLUDE}" "${WEFT_CUBLASLT_INCLUDE}")
endif()
