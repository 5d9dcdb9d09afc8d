#include "store/average.h"

#include <algorithm>
#include <deque>
#include <filesystem>

#include "base/error.h"
#include "store/model_file.h"

namespace quipu {
namespace {

void require_alike(const CheckpointFile& first, const CheckpointFile& other) {
  const char* what = nullptr;
  if (first.facts().config != other.facts().config) what = "configuration";
  if (what == nullptr && first.facts().tokenizer != other.facts().tokenizer) what = "tokenizer";
  const auto same = [](const ArrayShape& a, const ArrayShape& b) { return a.name == b.name && a.shape == b.shape; };
  if (what == nullptr && !std::ranges::equal(first.parameters(), other.parameters(), same)) what = "list of parameters";
  if (what != nullptr)
    throw InputError("{}: its {} is not that of {}; only checkpoints of equal models can be averaged", other.name(),
                     what, first.name());
}

NamedArray average(const std::deque<CheckpointFile>& files, const ArrayShape& shape) {
  NamedArray mean{shape.name, shape.shape, std::vector<float>(static_cast<std::size_t>(shape.elements()))};
  std::vector<double> sum(mean.data.size(), 0);
  for (const CheckpointFile& file : files) {
    file.read_parameter(shape.name, mean.data);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(mean.data[i]);
  }
  const auto count = static_cast<double>(files.size());
  std::ranges::transform(sum, mean.data.begin(), [count](double x) { return static_cast<float>(x / count); });
  return mean;
}

CheckpointFile open_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (path == "-" || !std::filesystem::is_directory(path, ignored)) {
    InputFile file(path);
    if (file.is_hdf5()) return CheckpointFile(std::move(file));
  }
  throw InputError("{}: is no checkpoint of quipu; make one of it with convert model first", path);
}

void add_new(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  for (const std::string& line : more)
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
}

}  // namespace

void average_checkpoints(const std::vector<std::string>& inputs, const std::string& output,
                         const std::vector<std::string>& commands) {
  if (inputs.empty()) throw UsageError("average: there is no checkpoint; give at least one");
  std::deque<CheckpointFile> files;
  Checkpoint mean;
  for (const std::string& input : inputs) {
    files.push_back(open_checkpoint(input));
    require_alike(files.front(), files.back());
    const Provenance& history = files.back().facts().provenance;
    add_new(mean.facts.provenance.commands, history.commands);
    add_new(mean.facts.provenance.data, history.data);
  }
  mean.facts.config = files.front().facts().config;
  mean.facts.tokenizer = files.front().facts().tokenizer;
  for (const std::string& command : commands) mean.facts.provenance.commands.push_back(command);
  for (const ArrayShape& shape : files.front().parameters()) mean.parameters.push_back(average(files, shape));
  save_checkpoint(output, mean);
}

}  // namespace quipu
