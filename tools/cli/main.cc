// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include "tools/cli/cli.hpp"

int main(int argc, char** argv) {
  return weft::run_cli(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), std::cout,
                       std::cerr);
}
