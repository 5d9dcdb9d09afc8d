#pragma once
#include <span>
#include <string>
#include <vector>

#include "store/dataset_file.h"
#include "store/model_file.h"
#include "store/state_file.h"

namespace quipu_test {

inline std::vector<float> wave(std::size_t n, float scale) {
  std::vector<float> data(n);
  for (std::size_t i = 0; i < n; ++i) data[i] = scale * static_cast<float>(i % 97) - 3.0F;
  return data;
}

inline quipu::Checkpoint sample_checkpoint() {
  quipu::Checkpoint checkpoint;
  checkpoint.facts.config = R"({"dim": 5})";
  checkpoint.facts.progress = R"({"step": 12})";
  checkpoint.facts.tokenizer = {"bytes", {{"specials", {1, 2, 3}}}};
  checkpoint.facts.counters = {{"steps", 12}, {"tokens", std::int64_t{1} << 40}};
  checkpoint.facts.provenance = {{"train d.h5 -o m.h5"}, {"00ff d.h5"}};
  checkpoint.parameters = {
      {"layers.0/w", {2, 3, 4}, wave(24, 0.5F)}, {"embed", {7, 5}, wave(35, 2.0F)}, {"scale", {}, {7}}};
  checkpoint.optimizer = {{"first", {60}, wave(60, 0.1F)}, {"second", {60}, wave(60, 0.01F)}};
  return checkpoint;
}

inline quipu::SavedState sample_state() {
  quipu::SavedState state;
  state.parameter_digest = "00112233445566778899aabbccddeeff";
  state.tokens = std::int64_t{1} << 33;
  state.leaves = {{"layers.1/s", {1, 2, 3}, wave(6, 0.25F)},
                  {"layers.0/position", {1}, std::vector<std::int64_t>{std::int64_t{1} << 33}},
                  {"exact", {2}, std::vector<double>{0.1, -0.2}}};
  state.blobs = {{"open bytes", {0xe2, 0x82}}};
  state.provenance = {{"generate m.h5 --state-out s.h5"}, {}};
  return state;
}

inline void write_sample_dataset(const std::string& path) {
  quipu::DatasetWriter writer(path, {"bytes", {{"specials", {1, 2, 3}}}}, 256, {{"convert text"}, {"00ff a.txt"}});
  std::vector<std::int32_t> tokens(300);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * i % 251);
  for (const char* name : {"train", "valid"}) {
    writer.split(name).append(tokens);
    writer.split(name).end_document();
    writer.split(name).append(std::span<const std::int32_t>(tokens).first(100));
    writer.split(name).count_text("some words here");
  }
  writer.commit();
}

}  // namespace quipu_test
