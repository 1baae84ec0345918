# specdec_embed(<layer> <function> HEADER <header> FILES ...): text files as part of the library specdec_<layer>.
# The function, declared in the header, gives them in the order of the list:
#
#   std::span<const core::EmbeddedFile> specdec::cost::hardware_preset_files();
#   specdec_embed(analysis specdec::cost::hardware_preset_files HEADER analysis/cost/preset_files.hpp FILES ...)
#
# They are written into a source of the build folder whenever one of them changes; the program opens none of them.
# Run as a script (cmake -P) this file writes that source.

if(CMAKE_SCRIPT_MODE_FILE)
  string(REGEX REPLACE "::[^:]*$" "" namespace "${FUNCTION}")
  string(REGEX REPLACE "^.*::" "" name "${FUNCTION}")
  set(entries "")
  foreach(path IN LISTS FILES)
    cmake_path(GET path FILENAME file)
    file(READ "${path}" content)
    string(FIND "${content}" ")specdec\"" end_of_literal)
    if(NOT end_of_literal EQUAL -1)
      message(FATAL_ERROR "${path} contains )specdec\", which ends the literal that it would stand in")
    endif()
    string(APPEND entries "    {\"${file}\", R\"specdec(${content})specdec\"},\n")
  endforeach()
  list(LENGTH FILES count)
  file(WRITE "${OUTPUT}" "// Written by cmake/SpecdecEmbed.cmake.
#include \"${HEADER}\"

namespace ${namespace} {
namespace {

constexpr core::EmbeddedFile ${name}_embedded[${count}] = {
${entries}};

}  // namespace

std::span<const core::EmbeddedFile> ${name}() { return ${name}_embedded; }

}  // namespace ${namespace}
")
  return()
endif()

function(specdec_embed layer function)
  cmake_parse_arguments(arg "" "HEADER" "FILES" ${ARGN})
  string(REGEX REPLACE "^.*::" "" name ${function})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  list(TRANSFORM arg_FILES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DFUNCTION=${function} -DHEADER=${arg_HEADER} "-DFILES=${arg_FILES}" -DOUTPUT=${output}
      -P ${PROJECT_SOURCE_DIR}/cmake/SpecdecEmbed.cmake
    DEPENDS ${arg_FILES} ${PROJECT_SOURCE_DIR}/cmake/SpecdecEmbed.cmake
    COMMENT "Embedding ${name}" VERBATIM)
  # A rule belongs to the folder that wrote it; the library is another folder's.
  add_custom_target(specdec_embed_${name} DEPENDS ${output})
  add_dependencies(specdec_${layer} specdec_embed_${name})
  target_sources(specdec_${layer} PRIVATE ${output})
  set_property(TARGET specdec_${layer} APPEND PROPERTY SPECDEC_EMBEDDED ${name})
  set_property(TARGET specdec_embed_${name} PROPERTY SPECDEC_OUTPUT ${output})
endfunction()
