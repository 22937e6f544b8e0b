# Installs the CMake package: after it, `find_package(troupe)` works against
# the install tree. The libraries themselves install in troupe_library().
include(CMakePackageConfigHelpers)

set(troupe_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
install(TARGETS troupe_troupe EXPORT troupe)
install(EXPORT troupe NAMESPACE troupe:: FILE troupeTargets.cmake
  DESTINATION ${troupe_package_dir})

configure_package_config_file(cmake/troupeConfig.cmake.in
  ${PROJECT_BINARY_DIR}/troupeConfig.cmake
  INSTALL_DESTINATION ${troupe_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/troupeConfig.cmake
  ${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake
  third_party/FindCAF.cmake
  third_party/FindDNNL.cmake
  third_party/FindOpenBLAS.cmake
  third_party/Findlibzip.cmake
  DESTINATION ${troupe_package_dir})
