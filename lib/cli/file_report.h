#pragma once
#include <string>

#include "cli/report.h"
#include "store/describe.h"

namespace quipu {

/// What a dataset, checkpoint or state is, in words. `contents`: with a list of what is inside.
std::string file_report_text(const std::string& name, const FileDescription& about, bool contents);

/// The same as an object: schema, file, format, facts; a configuration and a progress as objects in it.
Json file_report_json(const std::string& name, const FileDescription& about);

}  // namespace quipu
