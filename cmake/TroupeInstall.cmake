# Installs the CMake package and troupe.pc: after it, `find_package(troupe)` and
# `pkg-config troupe` work against the install tree, wherever it is moved. The
# libraries themselves install in troupe_library(). Install components: `runtime`
# (libtroupe.so), `engines` (modules), `dev` (headers, archives, package files),
# `tool` (the command).
include(CMakePackageConfigHelpers)

set(troupe_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
install(TARGETS troupe_troupe EXPORT troupe COMPONENT dev)
install(EXPORT troupe NAMESPACE troupe:: FILE troupeStaticTargets.cmake
  DESTINATION ${troupe_package_dir} COMPONENT dev)
if(TROUPE_SHARED)
  install(TARGETS troupe_shared EXPORT troupe_shared
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
      COMPONENT runtime NAMELINK_COMPONENT dev)
  install(EXPORT troupe_shared NAMESPACE troupe:: FILE troupeSharedTargets.cmake
    DESTINATION ${troupe_package_dir} COMPONENT dev)
endif()
include(TroupePkgConfig)

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
  DESTINATION ${troupe_package_dir} COMPONENT dev)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)

if(NOT PROJECT_IS_TOP_LEVEL) # the other project makes packages
  return()
endif()
# Packages: `cpack -G TGZ` makes one tarball of everything, `cpack -G DEB` Debian
# packages as Debian divides libraries.
set(CPACK_PACKAGE_NAME troupe)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_VENDOR "The Troupe authors")
set(CPACK_PACKAGE_CONTACT "The Troupe authors <troupe@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime engines dev tool)
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libtroupe${TROUPE_ABI})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS libtroupe-engines)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The shared library.")
set(CPACK_DEBIAN_ENGINES_PACKAGE_NAME libtroupe-engines)
set(CPACK_COMPONENT_ENGINES_DESCRIPTION
  "Modules that connect processes by Gloo and MPI, loaded when they are used.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtroupe-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF) # has archives alone
# Of static libraries, a program needs what they need.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "libtroupe${TROUPE_ABI} (= ${PROJECT_VERSION}), libcaf-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "libdnnl-dev, \
libopenblas-pthread-dev, libprotobuf-dev, libzip-dev, libssl-dev, zlib1g-dev")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers, static libraries, package files.")
set(CPACK_DEBIAN_TOOL_PACKAGE_NAME troupe)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOL_PACKAGE_RECOMMENDS libtroupe-engines)
set(CPACK_COMPONENT_TOOL_DESCRIPTION "The command troupe.")
include(CPack)
