#include "store/model_file.h"
#include "store/tensor_formats.h"

namespace quipu {

namespace {

/// A checkpoint of ours seen as a file of tensors: its parameters, its configuration, its tokenizer.
class CheckpointSource final : public TensorSource {
 public:
  explicit CheckpointSource(CheckpointFile checkpoint)
      : TensorSource(checkpoint.name(), kCheckpointFormat.name, checkpoint.file().file_bytes()),
        checkpoint_(std::move(checkpoint)) {
    for (const ArrayShape& array : checkpoint_.parameters()) {
      add_tensor(array.name, TensorType::kF32, {array.shape.begin(), array.shape.end()});
    }
    metadata_.texts.emplace_back("config", checkpoint_.facts().config);
    metadata_.tokenizer = checkpoint_.facts().tokenizer;
    finish_tensors();
  }

  std::optional<std::span<const std::byte>> stored(const TensorInfo&) const override { return std::nullopt; }

 private:
  void read_values(const TensorInfo& tensor, std::span<float> values) const override {
    checkpoint_.read_parameter(tensor.name, values);
  }

  CheckpointFile checkpoint_;
};

}  // namespace

std::unique_ptr<TensorSource> open_checkpoint_tensors(InputFile file) {
  return std::make_unique<CheckpointSource>(CheckpointFile(std::move(file)));
}

}  // namespace quipu
