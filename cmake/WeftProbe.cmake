# SPDX-License-Identifier: Apache-2.0
# The program weft-probe. With nvcc and the headers of NCCL it measures this machine; without them it is built with the
# synthetic backend only, and says so here and when it is asked for CUDA.

set(WEFT_PROBE_CUDA OFF)
if(WEFT_CUDA)
  include(WeftCuda)
endif()

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/probe/*.cc")
list(FILTER sources EXCLUDE REGEX "${WEFT_TESTLIKE}")
add_executable(weft-probe ${sources})
weft_common(weft-probe)
weft_warnings(weft-probe)
weft_link(weft-probe PRIVATE weft_cli)
if(WEFT_PROBE_CUDA)
  weft_link(weft-probe PRIVATE weft_probe_cuda)
  target_compile_definitions(weft-probe PRIVATE WEFT_HAS_CUDA)
endif()
set_property(GLOBAL APPEND PROPERTY WEFT_INSTALL_TARGETS weft-probe)
