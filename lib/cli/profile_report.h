#pragma once
#include <span>
#include <string>
#include <vector>

#include "cli/plot.h"
#include "cli/report.h"
#include "profile/verdict.h"

namespace quipu {

/// Rows of one mixer and number of threads, which stand together.
std::vector<std::span<const ProfileRow>> curves_of(const Profile& profile);
/// "gsa", or "gsa, 2 threads" where the profile has several numbers of threads.
std::string curve_name(const Profile& profile, const ProfileRow& row);

/// "state constant: yes (262,144 bytes)", "state constant: no (65,544 bytes at 128, 67,108,872 at 131,072)".
std::string state_verdict(const Verdict& verdict);
/// "time per token: flat from 128 to 131,072 (x1.02)", "time per token: grows with length (x31 from 128 to 131,072)".
std::string time_verdict(const Verdict& verdict);

/// The report in words: the table, the ceilings, a verdict for each curve, and where there are any, the operations.
std::string profile_text(const Profile& profile);
/// The same for machines: a line of names and a line for each row; then, where there are any, the same of operations.
std::string profile_tsv(const Profile& profile);
Json profile_json(const Profile& profile);
/// Time per token, and memory, against length.
PlotSheet profile_plots(const Profile& profile);

}  // namespace quipu
