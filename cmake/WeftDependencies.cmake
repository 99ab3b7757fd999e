# SPDX-License-Identifier: Apache-2.0
# Everything comes from distribution packages: tools/apt-packages.txt lists them, tools/setup installs them.

find_package(Boost 1.74 REQUIRED CONFIG COMPONENTS headers)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(pugixml 1.12 REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

if(WEFT_TESTS)
  find_package(GTest 1.12 REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()
if(WEFT_BENCH)
  find_package(benchmark 1.7 REQUIRED)
endif()
