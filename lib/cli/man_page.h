#pragma once
#include <string>

#include "cli/command_text.h"
#include "cli/tool_info.h"

namespace quipu {

/// The manual page of a tool as troff with the man macros. It depends on nothing but its arguments and the version, so
/// that the page in man/ can be compared with it.
std::string man_page(const ToolInfo& info, const CommandText& tool);

}  // namespace quipu
