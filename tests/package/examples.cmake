# Builds examples as projects of their own, as their READMEs say, and runs them.
# The smallest one, or all if the environment has TROUPE_ALL_EXAMPLES.
#   cmake -DSOURCE_DIR=... -DWORK_DIR=... -DCXX=... [-DLAUNCHER=...] -DPREFIX=...
#     -P examples.cmake
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

set(examples minimal_training)
if(DEFINED ENV{TROUPE_ALL_EXAMPLES})
  file(GLOB projects ${SOURCE_DIR}/examples/*/CMakeLists.txt)
  list(TRANSFORM projects REPLACE ".*/([a-z_]+)/CMakeLists.txt" "\\1"
    OUTPUT_VARIABLE examples)
endif()

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR}/run)
file(CREATE_LINK ${SOURCE_DIR}/data ${WORK_DIR}/run/data SYMBOLIC)
set(arguments_of_inference digits)
foreach(example IN LISTS examples)
  must(${CMAKE_COMMAND} -G Ninja -S ${SOURCE_DIR}/examples/${example}
    -B ${WORK_DIR}/${example} -DCMAKE_PREFIX_PATH=${PREFIX}
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_CXX_FLAGS=${FLAGS})
  must(${CMAKE_COMMAND} --build ${WORK_DIR}/${example})
  if(example STREQUAL "inference")
    must(${PREFIX}/bin/troupe train digits --data data/digits --epochs 4 --save digits
      WORKING_DIRECTORY ${WORK_DIR}/run)
  endif()
  must(${WORK_DIR}/${example}/${example} ${arguments_of_${example}}
    WORKING_DIRECTORY ${WORK_DIR}/run)
endforeach()
