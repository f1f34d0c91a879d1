# ccache where it is installed: compilers are started through it, unless the compiler is ccache by another name already,
# or CMAKE_CXX_COMPILER_LAUNCHER says how. A clone elsewhere finds what another one has compiled,
# and so does a project that has moved: its paths are taken as relative to it, and the tree's as they are. A project in
# the tree (the tutorials', those of tests) moves with it, and so do the paths of both.
find_program(RLT_CCACHE ccache)
file(REAL_PATH "${CMAKE_CXX_COMPILER}" rlt_real_compiler)
cmake_path(IS_PREFIX CMAKE_CURRENT_SOURCE_DIR "${RLT_PROJECT_DIRECTORY}" NORMALIZE rlt_project_is_in_tree)
set(rlt_moving "${RLT_PROJECT_DIRECTORY}")
if(rlt_project_is_in_tree)
  set(rlt_moving "${CMAKE_CURRENT_SOURCE_DIR}")
endif()
if(RLT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT rlt_real_compiler MATCHES "/ccache$")
  set(CMAKE_CXX_COMPILER_LAUNCHER
    env "CCACHE_BASEDIR=${rlt_moving}" CCACHE_NOHASHDIR=1 "${RLT_CCACHE}")
endif()
