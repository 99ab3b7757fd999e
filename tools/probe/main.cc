// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include "tools/probe/probe.hpp"

int main(int argc, char** argv) {
  return weft::run_probe(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                         std::cout, std::cerr);
}
