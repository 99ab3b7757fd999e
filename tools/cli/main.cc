// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include "tools/cli/cli.hpp"
#include "tools/serve/http.hpp"

int main(int argc, char** argv) {
#ifdef WEFT_HTTP
  weft::plug_http_server(weft::make_http_server);
#endif
  return weft::run_cli(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), std::cout,
                       std::cerr);
}
