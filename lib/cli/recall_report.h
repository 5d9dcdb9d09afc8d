#pragma once
#include <string>

#include "cli/report.h"
#include "models/language_model.h"
#include "store/recall_file.h"
#include "train/question_score.h"
#include "train/recall_score.h"

namespace quipu {

/// What a measurement was of.
struct RecallSubject {
  std::string model, data, split;
  std::string digest;  ///< of the task
  TaskFacts task;
  Index parameters = 0, state_bytes = 0;
  std::string mixer;
  double wall_s = 0;
};

/// The longest sequence that a model can read; 0: any.
Index longest_input(const LanguageModel& model);

/// "0.932 (0.921 to 0.941)"
std::string share_text(const Share& share);
/// Sets PREFIXaccuracy, PREFIXaccuracy_low and PREFIXaccuracy_high.
void put_share(Json& json, const std::string& prefix, const Share& share);

/// The share that a task's accuracy is.
const Share& accuracy_of(const RecallSubject& subject, const RecallResult& result);

std::string recall_report_text(const RecallSubject& subject, const RecallResult& result);
Json recall_report_json(const RecallSubject& subject, const RecallResult& result);

/// Of a file of questions. `prompt`: the template that was used, empty: none.
std::string question_report_text(const RecallSubject& subject, LineKind kind, const std::string& prompt,
                                 const QuestionResult& result);
Json question_report_json(const RecallSubject& subject, LineKind kind, const std::string& prompt,
                          const QuestionResult& result);

/// Both forms of the model, side by side.
std::string forms_text(const FormComparison& forms);
Json forms_json(const FormComparison& forms);

}  // namespace quipu
