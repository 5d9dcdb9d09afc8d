#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "mixers/registry.h"
#include "store/average.h"
#include "store/describe.h"
#include "train/generator.h"
#include "train/model_checkpoint.h"

using namespace quipu;
using quipu_test::TemporaryFolder;

namespace {

ModelConfig config_of(const std::string& mixer, const std::string& head = "untied") {
  ModelConfig config;
  config.vocab = 40;
  config.dim = 64;
  config.layers = 2;
  config.heads = 2;
  config.mixer = mixer;
  config.head = head;
  return config;
}

CheckpointFacts facts_of(const LanguageModel& model) { return {to_json(model.config()), "", {"bytes", {}}, {}, {}}; }

/// A model with random weights, in a file.
void write_model(const std::string& path, const ModelConfig& config) {
  LanguageModel model(config, false);
  model.parameters().initialise(3);
  for (const auto& entry : model.parameters().trainable())
    if (entry.parameter->shape().rank() >= 2) {
      const Rng rng(5, 0, static_cast<std::uint64_t>(entry.begin));
      for (std::uint64_t i = 0; Real & weight : entry.parameter->value().span())
        weight = static_cast<Real>(0.2 * rng.normal(i++));
    }
  save_model(path, facts_of(model), model.parameters(), nullptr, nullptr);
}

/// The checkpoint `input` with its matrices in `format`.
void quantise(const std::string& input, const std::string& output, NumberFormat format) {
  const CheckpointFile file(input);
  const auto model = load_model_as(file, format);
  save_model(output, file.facts(), model->parameters(), nullptr, nullptr);
}

std::vector<std::int32_t> some_tokens() {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < 23; ++i) tokens.push_back((i * i + 3) % 40);
  return tokens;
}

/// Logits after each of the tokens, read one by one.
std::vector<Real> stepped(const LanguageModel& model) {
  ModelState state = model.initial_state(1);
  Scratch scratch;
  std::vector<Real> all, logits(40);
  for (const std::int32_t token : some_tokens()) {
    model.step({&token, 1}, state, scratch, {logits.data(), 1, 40, 40});
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

/// The same, read at once.
std::vector<Real> read_at_once(const LanguageModel& model) {
  ModelState state = model.initial_state(1);
  Tape tape(false);
  const auto tokens = some_tokens();
  const auto n = static_cast<Index>(tokens.size());
  const Layout layout = Layout::plain(1, n);
  const Var hidden = model.forward(tape, tokens, Context{.layout = layout}, state);
  std::vector<Real> all(static_cast<std::size_t>(n * 40));
  model.logits_into({all.data(), n, 40, 40}, hidden.value().matrix());
  return all;
}

double distance(const std::vector<Real>& a, const std::vector<Real>& b) {
  double difference = 0, size = 0;
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(static_cast<double>(a[i])));
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

}  // namespace

TEST_CASE("quantise: a model of every format runs as its expanded numbers say, by steps and at once") {
  const TemporaryFolder folder;
  for (const char* const mixer : {"rwkv4", "mamba2", "mamba", "t2r", "gsa,attention", "transformer_xl"}) {
    CAPTURE(mixer);
    write_model(folder / "m.h5", config_of(mixer));
    const std::vector<Real> exact = stepped(*load_model(folder / "m.h5"));
    for (const auto& [format, loss] :
         {std::pair{NumberFormat::bf16, 0.03}, {NumberFormat::q8, 0.1}, {NumberFormat::q4, 0.8}}) {
      CAPTURE(format_name(format));
      const std::string path = folder / std::string(format_name(format));
      quantise(folder / "m.h5", path, format);
      const CheckpointFile file(path);
      const auto model = load_model(file);
      CHECK_FALSE(model->parameters().packed().empty());
      CHECK(model->parameters().gradients().empty());
      CHECK(model->parameters().count() == load_model(folder / "m.h5")->parameters().count());
      CHECK(digest_of(model->parameters()) == file.parameter_digest());
      const std::vector<Real> logits = stepped(*model);
      CHECK(distance(read_at_once(*model), logits) < 1e-3);
      CHECK(distance(logits, exact) < loss);
      CHECK(distance(logits, exact) > 0);
      // Expanded again, the same model.
      quantise(path, folder / "wide.h5", NumberFormat::f32);
      const auto wide = load_model(folder / "wide.h5", true);
      CHECK(wide->parameters().packed().empty());
      CHECK(distance(stepped(*wide), logits) < 1e-3);
    }
  }
}

TEST_CASE("quantise: what stays float32, and what a file says of itself") {
  const TemporaryFolder folder;
  write_model(folder / "tied.h5", config_of("rwkv4", "tied"));
  quantise(folder / "tied.h5", folder / "q8.h5", NumberFormat::q8);
  const CheckpointFile file(folder / "q8.h5");
  for (const ArrayShape& array : file.parameters()) {
    CAPTURE(array.name);
    const bool is_matrix = array.name.find("layers.") == 0 && array.shape.size() == 2;
    CHECK((array.format == NumberFormat::q8) == is_matrix);
  }
  CHECK(file.formats_text() == "f32 and q8");
  bool shown = false;
  for (const auto& [name, fact] : describe_file(folder / "q8.h5", true).facts)
    if (name == "number_formats") shown = std::get<std::string>(fact) == "f32 and q8";
  CHECK(shown);
  const auto model = load_model(file);
  const Index bytes = model->parameters().value_bytes();
  CHECK(bytes < load_model(folder / "tied.h5")->parameters().value_bytes() / 2);
  const auto trained = load_model(file, true);  // expanded
  CHECK(trained->parameters().packed().empty());
  CHECK(distance(stepped(*trained), stepped(*model)) < 1e-3);
  average_checkpoints({folder / "q8.h5", folder / "q8.h5"}, folder / "mean.h5", {"average"});
  CHECK(distance(stepped(*load_model(folder / "mean.h5")), stepped(*model)) < 1e-3);
}

/// Name and shape, without the number of the layer.
std::string kind_of(const Parameters::Entry& entry) { return entry.name.substr(std::string("layers.0.").size()); }

TEST_CASE("quantise: every mixer's products with weights read what is stored") {
  // What stays float32 with two axes or more.
  const std::set<std::string> kept{
      "mixer.q_conv1d.weight",
      "mixer.k_conv1d.weight",
      "mixer.v_conv1d.weight",
      "mixer.conv1d.weight",  // convolutions
      "mixer.A_log",
      "mixer.time_decay",
      "mixer.time_faaaa",
      "mixer.r_k",
      "mixer.sigma",  // numbers
      "mixer.proj_k",
      "mixer.proj_v",
      "mixer.R",  // tables of positions
      "mixer.projection",
      "mixer.random_matrices",  // random, of one head's width
      "mixer.feature_map.weight",
      "mixer.feature_map.bias",
      "mixer.time_maa_w2",  // a map for each of several parts
      "mixer.gk_proj.1.weight",
      "mixer.dt_proj.weight",  // fewer columns than a block
  };
  for (const MixerEntry& mixer : registry()) {
    if (mixer.channel) continue;
    CAPTURE(std::string(mixer.name));
    ModelConfig config = config_of(mixer.name);
    config.dim = 128, config.layers = 1, config.length = 48;
    const LanguageModel model(config, false, matrices_in(NumberFormat::q4));
    for (const auto* entries : {&model.parameters().trainable(), &model.parameters().buffers()})
      for (const auto& entry : *entries) {
        const Shape& shape = entry.parameter->shape();
        if (!entry.name.starts_with("layers.") || shape.rank() < 2 || shape.count() == shape[-1]) continue;
        CAPTURE(kind_of(entry) + " " + shape.text());
        CHECK(kept.contains(kind_of(entry)));
      }
  }
}

TEST_CASE("quantise: a file that contradicts itself is one clear line") {
  const TemporaryFolder folder;
  write_model(folder / "m.h5", config_of("rwkv4"));
  Checkpoint whole = load_checkpoint(folder / "m.h5");
  const auto write = [&](const std::string& changed, NumberFormat format) {
    std::vector<ArrayView> views = views_of(whole.parameters);
    std::vector<std::byte> rows;
    for (ArrayView& view : views)
      if (view.name == changed) {
        rows.resize(static_cast<std::size_t>(view.shape[0] * row_bytes(format, view.shape[1])));
        view.format = format, view.packed = rows, view.data = {};
      }
    save_checkpoint(folder / "bad.h5", whole.facts, views, {});
  };
  write("embedding.weight", NumberFormat::q8);
  CHECK_THROWS_WITH_AS(load_model(folder / "bad.h5"),
                       doctest::Contains("bad.h5: parameter embedding.weight is in q8, this one must be in f32"),
                       InputError);
  write("head.weight", NumberFormat::q4);
  CHECK_NOTHROW(load_model(folder / "bad.h5"));
  for (float& weight : whole.parameters.back().data) weight = INFINITY;
  REQUIRE(whole.parameters.back().name == "head.weight");
  save_checkpoint(folder / "m.h5", whole);
  CHECK_THROWS_WITH_AS(quantise(folder / "m.h5", folder / "q.h5", NumberFormat::q4),
                       doctest::Contains("m.h5: parameter head.weight holds inf"), InputError);
}
