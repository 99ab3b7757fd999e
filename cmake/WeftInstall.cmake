# SPDX-License-Identifier: Apache-2.0
# A relocatable tree (bin, lib, include/weft, share/weft) and a Debian package made from it. The component `runtime` is what runs,
# `development` what others compile against; tools/package makes a portable tarball and a wheel of the first.

include(CMakePackageConfigHelpers)

get_property(targets GLOBAL PROPERTY WEFT_INSTALL_TARGETS)
if(NOT targets)
  return()
endif()
set(WEFT_SHARE_DIR "${CMAKE_INSTALL_DATADIR}/weft")
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weft")

install(TARGETS ${targets} EXPORT weftTargets
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
foreach(dir sim models calibrate)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${dir}")
    install(DIRECTORY ${dir} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weft" COMPONENT development FILES_MATCHING PATTERN "*.hpp"
            PATTERN "*.test.hpp" EXCLUDE)
  endif()
endforeach()
foreach(dir configs scenarios)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${dir}")
    install(DIRECTORY ${dir} DESTINATION "${WEFT_SHARE_DIR}" COMPONENT runtime)
  endif()
endforeach()
install(DIRECTORY tests/validation/ DESTINATION "${WEFT_SHARE_DIR}/validation" COMPONENT runtime FILES_MATCHING PATTERN "*.json")
cmake_path(GET WEFT_PAGE PARENT_PATH pages)
install(DIRECTORY "${pages}/" DESTINATION "${WEFT_SHARE_DIR}" COMPONENT runtime OPTIONAL FILES_MATCHING PATTERN "*.html")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME copyright COMPONENT runtime)
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION "${package_dir}" COMPONENT development)
configure_package_config_file(cmake/weftConfig.cmake.in weftConfig.cmake
  INSTALL_DESTINATION "${package_dir}" PATH_VARS WEFT_SHARE_DIR)
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/weftConfig.cmake" "${PROJECT_BINARY_DIR}/weftConfigVersion.cmake"
  DESTINATION "${package_dir}" COMPONENT development)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_VENDOR "The weft authors")
set(CPACK_PACKAGE_CONTACT "The weft authors <weft@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Wanted only by those who use the Python package or compile against the installed libraries.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
  "python3-numpy, python3-pandas, libboost-dev, libeigen3-dev, libfmt-dev, libpugixml-dev, libxxhash-dev, nlohmann-json3-dev")
include(CPack)
