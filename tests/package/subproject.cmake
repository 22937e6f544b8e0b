# Configures a project that has Troupe as a part, compiles a file with all public
# headers, and builds a program with one layer. Configures it a second time, with
# libtroupe.so and by FetchContent. That takes minutes to build, which is done only
# if the environment has TROUPE_ALL_EXAMPLES.
#   cmake -DSOURCE_DIR=... -DWORK_DIR=... -DCXX=... [-DCLANG=...] [-DLAUNCHER=...]
#     -P subproject.cmake
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

set(folder ${WORK_DIR})
file(REMOVE_RECURSE ${folder})
set(configure ${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR}/subproject
  -DTROUPE=${SOURCE_DIR} -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCLANG=${CLANG})
must(${configure} -B ${folder})
must(${CMAKE_COMMAND} --build ${folder} --target all_headers)
must(${CMAKE_COMMAND} --build ${folder} --target uses_base)
must(${folder}/uses_base)

must(${configure} -B ${folder}/shared -DBUILD_SHARED_LIBS=ON -DBY_FETCH_CONTENT=ON)
if(DEFINED ENV{TROUPE_ALL_EXAMPLES})
  must(${CMAKE_COMMAND} --build ${folder}/shared --target consumer)
  must(${folder}/shared/consumer)
endif()
# What cannot be linked with libtroupe.so is refused.
execute_process(COMMAND ${configure} -B ${folder}/shared -DTROUPE_BUILD_APPS=ON
  RESULT_VARIABLE status ERROR_VARIABLE message OUTPUT_QUIET)
if(status EQUAL 0 OR NOT message MATCHES "TROUPE_BUILD_APPS needs the static")
  message(FATAL_ERROR "the command is not refused beside libtroupe.so: ${message}")
endif()
