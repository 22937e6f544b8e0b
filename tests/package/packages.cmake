# Makes the tarball and the Debian packages. A consumer is built with the tarball,
# and with the Debian packages unpacked into an empty folder.
#   cmake -DBUILD_DIR=... -DWORK_DIR=... -DCXX=... [-DLAUNCHER=...] -P packages.cmake
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

set(folder ${WORK_DIR})
file(REMOVE_RECURSE ${folder})
foreach(generator TGZ DEB)
  must(${CMAKE_CPACK_COMMAND} -G ${generator} --config ${BUILD_DIR}/CPackConfig.cmake
    -B ${folder})
endforeach()

file(GLOB tarball ${folder}/troupe-*.tar.gz)
file(ARCHIVE_EXTRACT INPUT ${tarball} DESTINATION ${folder}/tarball)
file(GLOB prefix ${folder}/tarball/troupe-*)
build_consumer(${folder}/tarball_build ${prefix})
must(${prefix}/bin/troupe --version)

file(GLOB packages ${folder}/*.deb)
foreach(package IN LISTS packages)
  must(dpkg-deb --extract ${package} ${folder}/root)
endforeach()
build_consumer(${folder}/root_build ${folder}/root/usr)

# Each package says what it needs of the others and of the system.
foreach(needs "libtroupe0:libcaf-core0.17" "libtroupe-dev:libtroupe0 (=" "troupe:libssl3")
  string(REGEX MATCH "^([^:]+):(.+)$" _ "${needs}")
  set(what ${CMAKE_MATCH_2})
  file(GLOB package ${folder}/${CMAKE_MATCH_1}_*.deb)
  execute_process(COMMAND dpkg-deb --field ${package} Depends
    OUTPUT_VARIABLE depends COMMAND_ERROR_IS_FATAL ANY)
  string(FIND "${depends}" "${what}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "${package} does not depend on ${what} but ${depends}")
  endif()
endforeach()
