# Builds consumers with pkg-config alone: with libtroupe.so, with the static
# libraries beside it, and with an installation that has only these.
#   cmake -DSOURCE_DIR=... -DWORK_DIR=... -DCXX=... [-DLAUNCHER=...] -DPREFIX=...
#     -P pkg_config.cmake
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

find_program(PKG_CONFIG pkg-config)
if(NOT PKG_CONFIG)
  message("skipped: needs pkg-config (apt-get install pkgconf)")
  return()
endif()

# Sets `variable` to what pkg-config prints about the package in `prefix`.
function(ask variable prefix)
  set(ENV{PKG_CONFIG_PATH} ${prefix}/lib/pkgconfig)
  execute_process(COMMAND ${PKG_CONFIG} ${ARGN} "troupe >= 0.2"
    OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(flags)
  set(${variable} ${flags} PARENT_SCOPE)
endfunction()

# Links and runs the consumer with what pkg-config prints for these options, and
# checks whether it loads libtroupe.so.
function(link_with prefix loads)
  ask(flags ${prefix} --libs ${ARGN})
  set(program ${WORK_DIR}/consumer)
  must(${CXX} ${program}.o -o ${program} ${flags} -Wl,-rpath,${prefix}/lib)
  must(${program})
  execute_process(COMMAND ldd ${program}
    OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
  string(FIND "${libraries}" libtroupe.so found)
  if((loads AND found EQUAL -1) OR (NOT loads AND NOT found EQUAL -1))
    message(FATAL_ERROR "with '${ARGN}', libtroupe.so is to be loaded: ${loads}\n"
      "${libraries}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
ask(flags ${PREFIX} --cflags)
must(${CXX} ${flags} -c ${CMAKE_CURRENT_LIST_DIR}/consumer/main.cpp
  -o ${WORK_DIR}/consumer.o)
link_with(${PREFIX} TRUE)
link_with(${PREFIX} FALSE --define-variable=library=:libtroupe.a --static)

# What TROUPE_SHARED=OFF installs: its package files with the same static libraries.
set(only_static ${WORK_DIR}/only_static)
must(${CMAKE_COMMAND} -G Ninja -S ${SOURCE_DIR} -B ${WORK_DIR}/configured
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX} -DBUILD_SHARED_LIBS=OFF
  -DTROUPE_BUILD_APPS=OFF -DTROUPE_BUILD_EXAMPLES=OFF -DTROUPE_BUILD_TESTS=OFF
  -DTROUPE_BUILD_BENCHMARKS=OFF)
file(COPY ${PREFIX}/lib ${PREFIX}/include DESTINATION ${only_static})
file(GLOB shared_parts ${only_static}/lib/libtroupe.so*
  ${only_static}/lib/cmake/troupe/troupeSharedTargets*.cmake)
file(REMOVE ${shared_parts})
file(COPY ${WORK_DIR}/configured/troupe.pc DESTINATION ${only_static}/lib/pkgconfig)
link_with(${only_static} FALSE)
link_with(${only_static} FALSE --static)
set_configure(configure ${WORK_DIR}/consumer_build ${only_static})
must(${configure})
