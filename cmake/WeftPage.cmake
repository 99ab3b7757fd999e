# SPDX-License-Identifier: Apache-2.0
# The report page, one HTML file made from tools/report. It needs npm; without it, or when its packages cannot be had, everything
# else is built all the same and weft says that the page is not there.

set(WEFT_PAGE "${PROJECT_BINARY_DIR}/report/report.html")
find_program(WEFT_NPM npm)
if(NOT WEFT_NPM)
  message(STATUS "no report page: npm is missing")
endif()
file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/report/src/*")
add_custom_command(OUTPUT "${PROJECT_BINARY_DIR}/report/stamp"
  COMMAND "${PROJECT_SOURCE_DIR}/tools/report/build" --optional "${WEFT_PAGE}"
  COMMAND "${CMAKE_COMMAND}" -E touch "${PROJECT_BINARY_DIR}/report/stamp"
  DEPENDS ${sources} "${PROJECT_SOURCE_DIR}/tools/report/build" "${PROJECT_SOURCE_DIR}/tools/report/bundle.mjs"
          "${PROJECT_SOURCE_DIR}/tools/report/package-lock.json"
  COMMENT "Report page" VERBATIM)
add_custom_target(report_page DEPENDS "${PROJECT_BINARY_DIR}/report/stamp")
