#pragma once
#include "text/recall_task.h"

namespace quipu {

/// Tasks that bind values to keys and ask for them: mqar, associative, induction.
std::vector<RecallTaskKind> binding_task_kinds();

}  // namespace quipu
