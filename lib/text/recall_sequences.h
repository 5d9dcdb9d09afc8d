#pragma once
#include "text/recall_task.h"

namespace quipu {

/// Tasks over a sequence as a whole: copy, selective-copy, reverse, sort, parity.
std::vector<RecallTaskKind> sequence_task_kinds();

}  // namespace quipu
