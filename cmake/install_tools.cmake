# Run while installing, with the variables that Install.cmake sets: gives every tool, man page and completion its
# installed name in a staging folder, and installs that.
set(PREFIX "$ENV{PROGRAM_PREFIX}")
string(TOUPPER "${PREFIX}" UPPER_PREFIX)
file(REMOVE_RECURSE ${QUIPU_STAGE})
file(MAKE_DIRECTORY ${QUIPU_STAGE}/bin ${QUIPU_STAGE}/man ${QUIPU_STAGE}/completions)

# A hyphen in a man page may be written \-.
string(REPLACE ";" "|" ANY_TOOL "${QUIPU_TOOLS}")
string(REPLACE "-" "\\\\?-" ANY_TOOL "${ANY_TOOL}")

foreach(TOOL ${QUIPU_TOOLS})
  file(COPY_FILE ${QUIPU_BIN}/${TOOL} ${QUIPU_STAGE}/bin/${PREFIX}${TOOL})

  # The title, the NAME line, and the tools' names in bold, which is how the pages write them.
  file(READ ${QUIPU_MAN}/${TOOL}.1 PAGE)
  if(PREFIX)
    string(REGEX REPLACE "(\n|^)(\\.TH \"?)" "\\1\\2${UPPER_PREFIX}" PAGE "${PAGE}")
    string(REGEX REPLACE "(\n\\.SH \"?NAME\"?\n)" "\\1${PREFIX}" PAGE "${PAGE}")
    string(REGEX REPLACE "(\n\\.BR? |\\\\fB)(${ANY_TOOL})([ \n\\])" "\\1${PREFIX}\\2\\3" PAGE "${PAGE}")
  endif()
  file(WRITE ${QUIPU_STAGE}/man/${PREFIX}${TOOL}.1 "${PAGE}")

  execute_process(COMMAND ${QUIPU_BIN}/${TOOL} --dump-completion OUTPUT_VARIABLE COMPLETION COMMAND_ERROR_IS_FATAL ANY)
  if(PREFIX)
    string(REGEX REPLACE "(\n|^)(complete [^\n]* )${TOOL}(\n|$)" "\\1\\2${PREFIX}${TOOL}\\3" COMPLETION "${COMPLETION}")
  endif()
  file(WRITE ${QUIPU_STAGE}/completions/${PREFIX}${TOOL} "${COMPLETION}")
endforeach()

file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${QUIPU_TO_BIN}" TYPE DIRECTORY USE_SOURCE_PERMISSIONS
     FILES "${QUIPU_STAGE}/bin/")
file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${QUIPU_TO_MAN}" TYPE DIRECTORY FILES "${QUIPU_STAGE}/man/")
file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${QUIPU_TO_COMPLETIONS}" TYPE DIRECTORY
     FILES "${QUIPU_STAGE}/completions/")
file(REMOVE_RECURSE ${QUIPU_STAGE})
