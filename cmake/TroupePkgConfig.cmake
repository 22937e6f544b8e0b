# Installs troupe.pc and libtroupe.a, which is the static libraries under one name:
# `pkg-config --static` prints what a linker needs that takes it.

# Sets `variable` to the flags that link these imported targets.
function(troupe_link_flags variable)
  set(flags "")
  foreach(target IN LISTS ARGN)
    get_target_property(file ${target} LOCATION)
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(name ${file} NAME)
    if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
      list(APPEND flags -L${folder})
    endif()
    string(REGEX REPLACE "^lib([^.]+)\\..*" "-l\\1" flag ${name})
    list(APPEND flags ${flag})
  endforeach()
  list(JOIN flags " " text)
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# Programs that include Troupe's headers use CAF themselves.
troupe_link_flags(pc_libs CAF::io CAF::core)
troupe_link_flags(pc_private_libs DNNL::dnnl OpenBLAS::openblas libzip::zip
  protobuf::libprotobuf-lite OpenSSL::SSL OpenSSL::Crypto)
list(TRANSFORM OpenMP_CXX_LIB_NAMES PREPEND "-l" OUTPUT_VARIABLE openmp_libs)
list(JOIN openmp_libs " " openmp_libs)
string(APPEND pc_private_libs " ${openmp_libs} ${CMAKE_THREAD_LIBS_INIT} -ldl")
set(pc_cflags "")
get_target_property(caf_folders CAF::core INTERFACE_INCLUDE_DIRECTORIES)
foreach(folder IN LISTS caf_folders)
  string(GENEX_STRIP "${folder}" folder)
  if(folder AND NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    string(APPEND pc_cflags " -I${folder}")
  endif()
endforeach()
if(NOT TROUPE_SHARED) # there is no other way to link Troupe
  string(APPEND pc_libs " ${pc_private_libs}")
  set(pc_private_libs "")
endif()

# Where the file lies, seen from its own folder: it can be moved.
file(RELATIVE_PATH prefix_from_pc
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/troupe.pc.in ${PROJECT_BINARY_DIR}/troupe.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/troupe.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

# Linkers read it as a script. It names files, not folders: it can be moved.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/libtroupe.a CONTENT
"/* All layers of Troupe; written by cmake/TroupePkgConfig.cmake. */
GROUP ( libtroupe_dashboard.a libtroupe_training.a libtroupe_actors.a libtroupe_comm.a
  libtroupe_graph.a libtroupe_kernels.a libtroupe_trace.a libtroupe_base.a )
")
install(FILES ${PROJECT_BINARY_DIR}/libtroupe.a
  DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
