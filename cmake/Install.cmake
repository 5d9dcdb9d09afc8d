# What `make install` puts where: the tools, their man pages and bash completions, the job scripts, the licence.
# The environment's PROGRAM_PREFIX, read when installing, precedes the names (quipu-convert, quipu-convert.1, ...).
include(GNUInstallDirs)

set(QUIPU_TOOLS "")
foreach(SOURCE ${QUIPU_APPS})
  get_filename_component(TOOL ${SOURCE} NAME_WE)
  list(APPEND QUIPU_TOOLS ${TOOL})
endforeach()

install(CODE "
  set(QUIPU_TOOLS \"${QUIPU_TOOLS}\")
  set(QUIPU_BIN \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\")
  set(QUIPU_MAN \"${CMAKE_SOURCE_DIR}/man\")
  set(QUIPU_STAGE \"${CMAKE_BINARY_DIR}/install\")
  set(QUIPU_TO_BIN \"${CMAKE_INSTALL_BINDIR}\")
  set(QUIPU_TO_MAN \"${CMAKE_INSTALL_MANDIR}/man1\")
  set(QUIPU_TO_COMPLETIONS \"${CMAKE_INSTALL_DATADIR}/bash-completion/completions\")
")
install(SCRIPT ${CMAKE_SOURCE_DIR}/cmake/install_tools.cmake)
install(DIRECTORY data/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/quipu USE_SOURCE_PERMISSIONS)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
