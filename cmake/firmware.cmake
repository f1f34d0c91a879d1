# Firmware programs: one target per experiment, from the flags and sources that cmake/board.cmake has read.

set(rlt_sanitizer_flags)
if(RLT_SANITIZE)
  set(rlt_sanitizer_flags -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
endif()

# Flags and include directories of the board, for any target.
function(rlt_use_board target)
  target_compile_options(${target} PRIVATE ${RLT_FLAGS} ${rlt_sanitizer_flags})
  target_link_options(${target} PRIVATE ${RLT_FLAGS} ${rlt_sanitizer_flags})
  target_include_directories(${target} PRIVATE ${RLT_INCLUDE_DIRECTORIES})
  target_compile_definitions(${target} PRIVATE ${RLT_DEFINITIONS})
endfunction()

function(rlt_use_experiment target header)
  rlt_experiment_names(${header} name type)
  get_filename_component(file_name ${header} NAME)
  target_compile_definitions(${target} PRIVATE "RLT_EXPERIMENT_HEADER=\"${file_name}\"" "RLT_EXPERIMENT=${type}")
endfunction()

# The target <experiment>, built as <build tree>/<experiment>. Linking fails where it allocates or throws: RLT_LINK_FLAGS
# renames such references to __wrap_malloc and so on, which nobody defines.
function(rlt_add_firmware header)
  rlt_glob(sources ${RLT_SOURCE_PATTERNS})
  if(NOT sources)
    message(FATAL_ERROR "No source matches ${RLT_SOURCE_PATTERNS}.")
  endif()
  rlt_experiment_names(${header} name type)
  add_executable(${name} ${sources})
  rlt_use_board(${name})
  rlt_use_experiment(${name} ${header})
  rlt_use_generated_headers(${name})
  if(APPLE OR RLT_SANITIZE)
    return()  # no --wrap in Apple's linker; the sanitizers allocate
  endif()
  target_link_options(${name} PRIVATE ${RLT_LINK_FLAGS})
  if(NOT RLT_TOOLCHAIN STREQUAL "host")
    set_target_properties(${name} PROPERTIES SUFFIX .elf)
    target_link_options(${name} PRIVATE -Wl,--print-memory-usage "-Wl,-Map=${CMAKE_CURRENT_BINARY_DIR}/${name}.map")
    set_property(TARGET ${name} APPEND PROPERTY ADDITIONAL_CLEAN_FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.map")
  endif()
  if(RLT_LINKER_SCRIPT)
    set(linker_script "${CMAKE_CURRENT_SOURCE_DIR}/${RLT_LINKER_SCRIPT}")
    target_link_options(${name} PRIVATE "-T${linker_script}")
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS "${linker_script}")
  endif()
endfunction()
