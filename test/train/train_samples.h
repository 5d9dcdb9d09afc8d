#pragma once
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "store/dataset_file.h"

namespace quipu {

/// Token i of a stream that can be foretold in part: a cycle with disturbances.
inline std::int32_t sample_token(Index i, Index vocab) {
  const auto n = static_cast<std::uint64_t>(i);
  const std::uint64_t noise = (n * 2654435761ULL >> 13) % 7 == 0 ? n % 5 : 0;
  return static_cast<std::int32_t>((n * n / 3 + n + noise) % static_cast<std::uint64_t>(vocab));
}

/// A dataset of a stream cut into documents of the given lengths, with a validation split of `valid` tokens (0: none).
inline void write_sample_dataset(const std::string& path, const std::vector<Index>& documents, Index valid,
                                 Index vocab) {
  DatasetWriter writer(path, {"bytes", {}}, vocab, {});
  const auto put = [&](const std::string& name, const std::vector<Index>& lengths) {
    SplitWriter& split = writer.split(name);
    Index at = 0;
    for (const Index length : lengths) {
      std::vector<std::int32_t> tokens;
      for (Index i = 0; i < length; ++i) tokens.push_back(sample_token(at++, vocab));
      split.append(tokens);
      split.end_document();
    }
    split.add_counts(static_cast<std::uint64_t>(at), 1);
  };
  put("train", documents);
  if (valid > 0) put("valid", {valid});
  writer.commit();
}

}  // namespace quipu
