# SPDX-License-Identifier: Apache-2.0
# Language, code generation and build speed: what holds for every file of the project.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_UNITY_BUILD OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Debug is for tests: optimised a little, checks on, line tables for backtraces.
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -D_GLIBCXX_ASSERTIONS")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# Same bits from both compilers: no fused multiply-add behind our back.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# Messages name files relative to the source tree, wherever it was built.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>")
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fdiagnostics-color=auto>)

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${WEFT_CCACHE}")
endif()
find_program(WEFT_MOLD mold)
if(WEFT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(WEFT_SANITIZE)
  list(JOIN WEFT_SANITIZE "," weft_sanitizers)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${weft_sanitizers}>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all> $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options("-fsanitize=${weft_sanitizers}")
endif()

if(WEFT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "WEFT_FUZZ needs clang: configure with --preset fuzz")
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()
