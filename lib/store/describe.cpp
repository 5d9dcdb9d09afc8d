#include "store/describe.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "store/dataset_file.h"
#include "store/model_file.h"
#include "store/state_file.h"

namespace quipu {

namespace {

using Fact = std::variant<std::int64_t, std::string>;

void add_fact(FileDescription& about, std::string name, Fact fact) {
  about.facts.emplace_back(std::move(name), std::move(fact));
}

void describe_dataset(FileDescription& about, std::shared_ptr<const H5Reader> file) {
  const Dataset dataset(std::move(file));
  add_fact(about, "tokenizer", dataset.tokenizer().kind);
  add_fact(about, "vocab", dataset.vocab());
  add_fact(about, "content_digest", dataset.digest());
  for (const std::string& name : dataset.split_names()) {
    const Split& split = dataset.split(name);
    add_fact(about, name + "_tokens", split.tokens());
    if (split.is_scored()) {
      add_fact(about, name + "_examples", split.examples());
      add_fact(about, name + "_length", split.length());
    } else {
      add_fact(about, name + "_documents", split.documents());
    }
    add_fact(about, name + "_words", static_cast<std::int64_t>(split.words()));
    add_fact(about, name + "_bytes", static_cast<std::int64_t>(split.bytes()));
  }
}

void describe_checkpoint(FileDescription& about, std::shared_ptr<const H5Reader> file) {
  const CheckpointFile checkpoint(std::move(file));
  std::int64_t parameters = 0;
  for (const ArrayShape& array : checkpoint.parameters()) parameters += array.elements();
  std::int64_t moments = 0;
  for (const ArrayShape& array : checkpoint.optimizer()) moments += array.elements();
  add_fact(about, "tokenizer", checkpoint.facts().tokenizer.kind);
  add_fact(about, "parameters", parameters);
  add_fact(about, "arrays", static_cast<std::int64_t>(checkpoint.parameters().size()));
  add_fact(about, "optimizer_numbers", moments);
  add_fact(about, "parameter_digest", checkpoint.parameter_digest());
  about.texts.emplace_back("config", checkpoint.facts().config);
  if (!checkpoint.facts().progress.empty()) about.texts.emplace_back("progress", checkpoint.facts().progress);
}

void describe_state(FileDescription& about, const H5Reader& file) {
  std::uint64_t bytes = 0;
  const std::vector<std::string> leaves = file.data_sets("/leaves");
  for (const std::string& name : leaves) bytes += file.entry("/leaves/" + name).bytes();
  add_fact(about, "tokens", file.integer_attribute("/", "tokens"));
  add_fact(about, "leaves", static_cast<std::int64_t>(leaves.size()));
  add_fact(about, "state_bytes", static_cast<std::int64_t>(bytes));
  add_fact(about, "parameter_digest", file.text_attribute("/", "parameter_digest"));
}

}  // namespace

FileDescription describe_file(const std::string& path, bool verify) {
  const auto file =
      std::make_shared<const H5Reader>(path, std::vector{kDatasetFormat, kCheckpointFormat, kStateFormat});
  if (verify) file->verify();
  FileDescription about;
  about.format = file->format();
  about.version = file->version();
  about.created_by = file->created_by();
  about.created = file->created();
  about.digest = file->digest();
  about.file_bytes = file->file_bytes();
  about.provenance = read_provenance(*file);
  if (about.format == kDatasetFormat.name) describe_dataset(about, file);
  if (about.format == kCheckpointFormat.name) describe_checkpoint(about, file);
  if (about.format == kStateFormat.name) describe_state(about, *file);
  for (const std::string& name : file->data_sets("/")) {
    const H5Entry& entry = file->entry("/" + name);
    about.contents.emplace_back("/" + name,
                                fmt::format("{} [{}]", element_name(*entry.type), fmt::join(entry.shape, ", ")));
  }
  std::ranges::sort(about.contents);
  return about;
}

}  // namespace quipu
