# ccache where it is installed: compilers are started through it, unless the compiler is ccache by another name already,
# or CMAKE_CXX_COMPILER_LAUNCHER says how. A clone elsewhere finds what another one has compiled,
# and so does a project that has moved: its paths are taken as relative to it, and the tree's as they are.
find_program(RLT_CCACHE ccache)
file(REAL_PATH "${CMAKE_CXX_COMPILER}" rlt_real_compiler)
if(RLT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT rlt_real_compiler MATCHES "/ccache$")
  set(CMAKE_CXX_COMPILER_LAUNCHER
    env "CCACHE_BASEDIR=${RLT_PROJECT_DIRECTORY}" CCACHE_NOHASHDIR=1 "${RLT_CCACHE}")
endif()
