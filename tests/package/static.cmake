# Builds a consumer of the static libraries.
#   cmake -DWORK_DIR=... -DCXX=... [-DLAUNCHER=...] -DPREFIX=... -P static.cmake
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

build_consumer(${WORK_DIR}/build ${PREFIX} COMPONENTS static)
execute_process(COMMAND ldd ${WORK_DIR}/build/consumer
  OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
if(libraries MATCHES "libtroupe")
  message(FATAL_ERROR "the program needs a library of Troupe:\n${libraries}")
endif()
