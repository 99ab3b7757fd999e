# SPDX-License-Identifier: Apache-2.0
# The Python package weft, when pybind11 and the headers of Python are there: build/PRESET/python/weft, to be put on PYTHONPATH.
# Included before the libraries, whose code then has to be position independent.

option(WEFT_PYTHON "Build the Python package when pybind11 is found" ON)
# The module for other Pythons too, for wheels: it needs nothing of them but headers.
set(WEFT_PYTHON_ROOTS "" CACHE STRING "Roots with usr/include/python3.N and usr/include/pybind11 of another release, a list")
set(WEFT_PYTHON_READY OFF)
if(NOT WEFT_PYTHON OR WEFT_SANITIZE OR WEFT_FUZZ)
  return()
endif()
# pybind11 of the distribution goes with its Python, whatever comes first on PATH.
if(NOT DEFINED Python_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module)
find_package(pybind11 2.9 QUIET CONFIG)
if(NOT Python_FOUND OR NOT pybind11_FOUND)
  message(STATUS "no Python package: pybind11 or Python's headers are missing (pybind11-dev, python3-dev)")
  return()
endif()
set(WEFT_PYTHON_READY ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Programs lose nothing by it: their own functions are not looked up at run time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fno-semantic-interposition)
endif()

function(weft_python_module target folder)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME _weft
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}/weft" CXX_VISIBILITY_PRESET hidden)
  weft_common(${target})
  weft_warnings(${target} RELAXED)
  weft_link(${target} PRIVATE weft_cli)
  # What weft's own libraries export would only collide with that of other modules.
  target_link_options(${target} PRIVATE "LINKER:--exclude-libs,ALL")
endfunction()

# weft_add_python_of(ROOT SOURCE...): build/PRESET/python3.N/weft. Of ROOT only the headers of Python and pybind11 are used, through
# links: the rest of its headers belong to another C library.
function(weft_add_python_of root)
  file(GLOB header "${root}/usr/include/python3.*/Python.h")
  if(NOT header MATCHES "/(python3\\.([0-9]+))/Python.h$" OR NOT EXISTS "${root}/usr/include/pybind11/pybind11.h")
    message(FATAL_ERROR "WEFT_PYTHON_ROOTS: no headers of one Python and of pybind11 below ${root}/usr/include")
  endif()
  set(name "${CMAKE_MATCH_1}")
  set(target "weft_python_3${CMAKE_MATCH_2}")
  set(include "${PROJECT_BINARY_DIR}/headers/${name}")
  file(MAKE_DIRECTORY "${include}/${CMAKE_LIBRARY_ARCHITECTURE}")
  foreach(folder pybind11 "${CMAKE_LIBRARY_ARCHITECTURE}/${name}" "${name}")
    file(CREATE_LINK "${root}/usr/include/${folder}" "${include}/${folder}" SYMBOLIC)
  endforeach()
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX ".cpython-3${CMAKE_MATCH_2}-${CMAKE_LIBRARY_ARCHITECTURE}.so")
  target_include_directories(${target} SYSTEM PRIVATE "${include}" "${include}/${name}")
  weft_python_module(${target} ${name})
endfunction()

# After the libraries.
function(weft_add_python)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/python/*.cc")
  pybind11_add_module(weft_python MODULE NO_EXTRAS ${sources})
  weft_python_module(weft_python python)
  foreach(root IN LISTS WEFT_PYTHON_ROOTS)
    weft_add_python_of("${root}" ${sources})
  endforeach()
  set(files)
  foreach(name __init__.py _weft.pyi py.typed)
    set(to "${PROJECT_BINARY_DIR}/python/weft/${name}")
    add_custom_command(OUTPUT "${to}"
      COMMAND "${CMAKE_COMMAND}" -E copy "${PROJECT_SOURCE_DIR}/tools/python/weft/${name}" "${to}"
      DEPENDS "${PROJECT_SOURCE_DIR}/tools/python/weft/${name}" VERBATIM)
    list(APPEND files "${to}")
  endforeach()
  add_custom_target(weft_python_files ALL DEPENDS ${files})
  add_dependencies(weft_python weft_python_files)
  add_dependencies(all_products weft_python)
  install(TARGETS weft_python LIBRARY DESTINATION lib/python3/dist-packages/weft COMPONENT python)
  install(FILES ${files} DESTINATION lib/python3/dist-packages/weft COMPONENT python)
  if(WEFT_TESTS)
    add_test(NAME tests_python COMMAND "${Python_EXECUTABLE}" -m unittest discover -s tests/python -v
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(tests_python PROPERTIES TIMEOUT 600 LABELS python
      ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python;WEFT=${PROJECT_BINARY_DIR}/weft;PYTHONDONTWRITEBYTECODE=1")
  endif()
endfunction()
