# SPDX-License-Identifier: Apache-2.0
# weft_warnings(TARGET [RELAXED]): the warnings of the project. RELAXED (tests, benchmarks) leaves out those that literals trip.

function(weft_warnings target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RELAXED" "" "")
  set(flags
    -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast -Wextra-semi
    -Wimplicit-fallthrough -Wformat=2
    # Designated initialisers leave members to their defaults on purpose.
    -Wno-missing-field-initializers)
  if(arg_RELAXED)
    list(APPEND flags -Wno-sign-compare)
  else()
    list(APPEND flags -Wconversion -Wno-sign-conversion)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # No -Wpedantic here: g++ then refuses __int128, which exact transfer times need. clang checks the rest of it.
    list(APPEND flags -Wduplicated-cond -Wlogical-op)
    # The flow analyses of g++ 12 and 13 warn about correct std::string and std::vector code when they inline.
    list(APPEND flags -Wno-restrict)
    foreach(noisy array-bounds stringop-overflow stringop-overread maybe-uninitialized free-nonheap-object)
      list(APPEND flags -Wno-error=${noisy})
    endforeach()
    if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
      list(APPEND flags -Wno-dangling-reference)
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    list(APPEND flags -Wpedantic)
  endif()
  if(WEFT_WERROR)
    list(PREPEND flags -Werror)
  endif()
  target_compile_options(${target} PRIVATE ${flags})
endfunction()
