# MuJoCo, for what requires it ("// Requires: mujoco"): headers and library of the Python packages of the group "mujoco"
# that are installed beside RLT_PYTHON, in the version of host/requirements/lock.txt, and the models of Gymnasium's
# package there. Nothing else is compiled or linked differently, and nothing fails where it is not installed
# until something is built that requires it.

# Sets RLT_MUJOCO_VERSION, and RLT_MUJOCO_FOUND with the target rlt_mujoco.
macro(rlt_find_mujoco)
  set(RLT_MUJOCO_VERSION 4.0.0)

  # Looked for again at each build, so that CMake runs again once it is installed.
  get_filename_component(rlt_packages "${RLT_PYTHON}" DIRECTORY)
  get_filename_component(rlt_packages "${rlt_packages}" DIRECTORY)
  if(WIN32)
    set(rlt_packages "${rlt_packages}/Lib/site-packages")
  else()
    set(rlt_packages "${rlt_packages}/lib/python3*/site-packages")
  endif()
  file(GLOB rlt_mujoco_libraries CONFIGURE_DEPENDS
    "${rlt_packages}/mujoco/libmujoco.so.${RLT_MUJOCO_VERSION}"
    "${rlt_packages}/mujoco/libmujoco.${RLT_MUJOCO_VERSION}.dylib"
    "${rlt_packages}/mujoco/mujoco.dll")
  file(GLOB rlt_mujoco_models CONFIGURE_DEPENDS "${rlt_packages}/gymnasium/envs/mujoco/assets/ant.xml")

  if(rlt_mujoco_libraries AND rlt_mujoco_models)
    set(RLT_MUJOCO_FOUND ON)
    list(GET rlt_mujoco_libraries 0 rlt_mujoco_library)
    list(GET rlt_mujoco_models 0 rlt_mujoco_models)
    get_filename_component(rlt_mujoco_directory "${rlt_mujoco_library}" DIRECTORY)
    get_filename_component(rlt_mujoco_models "${rlt_mujoco_models}" DIRECTORY)
    add_library(rlt_mujoco SHARED IMPORTED)
    set_target_properties(rlt_mujoco PROPERTIES
      IMPORTED_LOCATION "${rlt_mujoco_library}"
      IMPORTED_IMPLIB "${rlt_mujoco_library}"  # on Windows: Zig's linker reads the library itself
      INTERFACE_INCLUDE_DIRECTORIES "${rlt_mujoco_directory}/include"
      INTERFACE_COMPILE_DEFINITIONS "RLT_MUJOCO_MODELS=\"${rlt_mujoco_models}\"")
  endif()
endmacro()

set(RLT_MUJOCO_FOUND OFF)
if("mujoco" IN_LIST RLT_PROVIDES AND NOT RLT_LEAST_PROCESSOR)  # not for other computers
  rlt_find_mujoco()
endif()

# `sentence` is why a header or source cannot be compiled here, or empty.
function(rlt_missing_requirement sentence file)
  set(${sentence} "" PARENT_SCOPE)
  rlt_requirements(words "${file}")
  if("mujoco" IN_LIST words AND NOT RLT_MUJOCO_FOUND)
    get_filename_component(name "${file}" NAME)
    set(${sentence} "${name} needs MuJoCo ${RLT_MUJOCO_VERSION} and its models among the Python packages of \
${RLT_PYTHON}: ./rlt installs them for what it builds, and otherwise \
${RLT_PYTHON} -m pip install mujoco-core==${RLT_MUJOCO_VERSION} gymnasium" PARENT_SCOPE)
  endif()
endfunction()

# For a target, what one of its files requires.
function(rlt_use_requirements target file)
  rlt_requirements(words "${file}")
  if("mujoco" IN_LIST words)
    target_link_libraries(${target} PRIVATE rlt_mujoco)
    if(WIN32)  # which looks beside the program
      add_custom_command(TARGET ${target} POST_BUILD VERBATIM COMMAND "${CMAKE_COMMAND}" -E copy_if_different
        $<TARGET_FILE:rlt_mujoco> $<TARGET_FILE_DIR:${target}>)
    endif()
  endif()
endfunction()

# In place of a target that cannot be built here: building it says why.
function(rlt_add_refusal target sentence)
  add_custom_target(${target}
    COMMAND ${CMAKE_COMMAND} -E echo "error: ${sentence}"
    COMMAND ${CMAKE_COMMAND} -E false
    VERBATIM)
endfunction()
