# SPDX-License-Identifier: Apache-2.0
# How the product's targets are made from folders. An empty or missing folder makes no target.

set(WEFT_TESTLIKE "\\.(test|perf|fuzz)\\.cc$")

# weft_product_sources(OUT DIR...): all .cc files below, without tests, benchmarks and fuzzers.
function(weft_product_sources out)
  set(files)
  foreach(dir IN LISTS ARGN)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${dir}/*.cc")
    list(APPEND files ${found})
  endforeach()
  list(FILTER files EXCLUDE REGEX "${WEFT_TESTLIKE}")
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# weft_link(TARGET SCOPE LIBRARY...): links what exists; our own libraries may not have sources yet.
function(weft_link target scope)
  foreach(library IN LISTS ARGN)
    if(NOT library MATCHES "^weft_" OR TARGET ${library})
      target_link_libraries(${target} ${scope} ${library})
    endif()
  endforeach()
endfunction()

# weft_common(TARGET): include root and version, for every target of ours.
function(weft_common target)
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_compile_definitions(${target} PRIVATE "WEFT_VERSION=\"${PROJECT_VERSION}\"")
endfunction()

# weft_add_library(NAME DIRS DIR... LINK LIBRARY...): static library weft_NAME, exported as weft::NAME.
function(weft_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DIRS;LINK")
  weft_product_sources(sources ${arg_DIRS})
  if(NOT sources)
    message(STATUS "weft_${name}: no sources yet")
    return()
  endif()
  set(target weft_${name})
  add_library(${target} STATIC ${sources})
  add_library(weft::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weft>")
  weft_common(${target})
  weft_warnings(${target})
  weft_link(${target} PUBLIC ${arg_LINK})
  set_property(GLOBAL APPEND PROPERTY WEFT_INSTALL_TARGETS ${target})
endfunction()

# Library weft_cli (so that tests call the commands in-process) and the program weft.
function(weft_add_cli)
  weft_product_sources(sources tools/cli)
  set(main "${PROJECT_SOURCE_DIR}/tools/cli/main.cc")
  list(REMOVE_ITEM sources "${main}")
  if(NOT sources)
    message(STATUS "weft: no sources in tools/cli yet")
    return()
  endif()
  add_library(weft_cli STATIC ${sources})
  weft_common(weft_cli)
  weft_warnings(weft_cli)
  # Where the catalogue lies when the program runs from a build tree. An installed one looks beside itself first.
  target_compile_definitions(weft_cli PRIVATE "WEFT_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"" "WEFT_PAGE=\"${WEFT_PAGE}\"")
  weft_link(weft_cli PUBLIC weft_sim weft_models weft_calibrate CLI11::CLI11 fmt::fmt nlohmann_json::nlohmann_json
    PkgConfig::xxhash ZLIB::ZLIB pugixml::pugixml spdlog::spdlog Threads::Threads)
  if(EXISTS "${main}")
    add_executable(weft "${main}")
    weft_common(weft)
    weft_warnings(weft)
    weft_link(weft PRIVATE weft_cli)
    add_dependencies(weft report_page)
    set_property(GLOBAL APPEND PROPERTY WEFT_INSTALL_TARGETS weft)
  endif()
endfunction()
