# ccache where it is installed: compilers are started through it (toolchains/cached), unless the compiler is ccache by
# another name already, or CMAKE_CXX_COMPILER_LAUNCHER says how. It takes paths of the project and of the build tree as
# relative to the build tree. The host tools configure through a link in there, <build tree>/tree, so the tree's paths are
# the same as well: what one clone or project has compiled, another one elsewhere finds.
find_program(RLT_CCACHE ccache)
file(REAL_PATH "${CMAKE_CXX_COMPILER}" rlt_real_compiler)
if(RLT_CCACHE AND NOT CMAKE_HOST_WIN32 AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT rlt_real_compiler MATCHES "/ccache$")
  set(rlt_base "${RLT_PROJECT_DIRECTORY}")
  string(FIND "${CMAKE_BINARY_DIR}/" "${rlt_base}/" rlt_place)
  if(NOT rlt_place EQUAL 0)
    set(rlt_base "${CMAKE_BINARY_DIR}")
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_SOURCE_DIR}/toolchains/cached" "${rlt_base}" "${RLT_CCACHE}")
endif()
