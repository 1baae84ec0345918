include(CMakePackageConfigHelpers)

foreach(layer traces analysis sim planner planner_sources planner_load planner_methods planner_parts planner_recordings planner_checkup planner_sweeps render render_figures)
  install(TARGETS specdec_${layer} EXPORT specdecTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/specdec)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sim/models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/specdec/models
  FILES_MATCHING PATTERN "*.json" PATTERN "*.jsonl" PATTERN "*.model" PATTERN "*.safetensors" PATTERN "*.md"
  PATTERN smollm2 EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(TARGETS specdec RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_SOURCE_DIR}/cli/completion/specdec.bash RENAME specdec
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PROJECT_SOURCE_DIR}/cli/completion/_specdec DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${PROJECT_SOURCE_DIR}/cli/completion/specdec.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(EXPORT specdecTargets NAMESPACE specdec:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/specdec)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/specdecConfig.cmake.in ${PROJECT_BINARY_DIR}/specdecConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/specdec)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/specdecConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/specdecConfig.cmake ${PROJECT_BINARY_DIR}/specdecConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindNettle.cmake ${CMAKE_CURRENT_LIST_DIR}/FindSentencePiece.cmake ${CMAKE_CURRENT_LIST_DIR}/FindRandom123.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/specdec)
