#include "train/text_generator.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <set>

#include "base/stop.h"
#include "base/temporary_folder.h"
#include "mixers/registry.h"
#include "text/byte_tokenizer.h"
#include "text/word_tokenizer.h"
#include "train/small_model.h"
#include "train/stream_file.h"

using namespace quipu;
using quipu_test::TemporaryFolder;

namespace {

const SamplingOptions kWarm{.temperature = 1.2, .top_k = 60, .repetition_penalty = 1.2, .seed = 9};

/// The whole text that a run shows.
std::string run(TextGenerator& generator, const std::string& prompt, std::int64_t tokens,
                const std::vector<std::string>& stops = {}, TextOutcome* outcome = nullptr) {
  std::string text;
  generator.read(text_of(prompt));
  const TextOutcome made = generator.generate({tokens, stops}, [&](std::string_view piece) { text += piece; });
  if (outcome != nullptr) *outcome = made;
  return text;
}

/// Says a fixed text, whatever it reads: the head of a model without layers to speak of is steered by the embedding.
/// Token `text[i]` is followed by `text[i + 1]`; bytes of `text` must differ.
std::unique_ptr<LanguageModel> speaker(const std::string& text) {
  ModelConfig config;
  config.vocab = 256;
  config.dim = 64;
  config.layers = 1;
  config.heads = 1;
  config.mixer = "linear_attention";
  config.channel_mixer = "none";
  config.head = "untied";
  auto model = std::make_unique<LanguageModel>(config, false);
  model->parameters().initialise(1);
  REQUIRE(text.size() < 64);
  const auto row = [](const Parameter& parameter, char byte) {
    return parameter.value().data() + static_cast<unsigned char>(byte) * 64;
  };
  for (const auto& entry : model->parameters().all()) {
    const bool table = entry.name == "embedding.weight" || entry.name == "head.weight";
    if (!table && !entry.name.ends_with("norm.weight"))
      for (Real& x : entry.parameter->value().span()) x = 0;
    if (!table) continue;
    for (Real& x : entry.parameter->value().span()) x = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (entry.name == "embedding.weight") row(*entry.parameter, text[i])[i] = 1;
      if (entry.name == "head.weight" && i > 0) row(*entry.parameter, text[i])[i - 1] = 9;
    }
  }
  return model;
}

long resident_pages() {
  long size = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident;
}

}  // namespace

TEST_CASE("text: a state saved to a file goes on as one process would, to the bit, for every mixer") {
  const TemporaryFolder folder;
  const ByteTokenizer bytes;
  for (const MixerEntry& entry : registry()) {
    if (entry.channel) continue;
    CAPTURE(entry.name);
    const auto model = small_model(entry.name, 256);
    const std::string path = folder / entry.name;
    TextGenerator one(*model, bytes, kWarm);
    std::string whole = run(one, "In the beginning ", 30);
    whole += run(one, "and then ", 30);
    whole += run(one, "", 30);

    std::string parts;
    for (const std::string prompt : {"In the beginning ", "and then ", ""}) {
      TextGenerator part(*model, bytes, kWarm);
      if (!parts.empty()) part.load(path, "digest");
      parts += run(part, prompt, 30);
      part.save(path, "digest", "generate");
    }
    CHECK(parts == whole);
    TextGenerator other(*model, bytes, kWarm);
    CHECK_THROWS_AS(other.load(path, "another digest"), InputError);
  }
}

TEST_CASE("text: states at marks of one reading are those of readings that end there, to the bit") {
  const TemporaryFolder folder;
  const ByteTokenizer bytes;
  std::string book;
  for (int i = 0; i < 600; ++i) book += "\xc3\xa9 " + std::to_string(i * i);
  const auto state_of = [&](TextGenerator& generator) {
    generator.save(folder / "s.h5", "digest", "generate");
    return load_state(folder / "s.h5", "digest");
  };
  const auto check = [&](const LanguageModel& model, std::size_t every) {
    const std::string prompt = book.substr(0, every * 4 - 1);
    TextGenerator marked(model, bytes, kWarm), plain(model, bytes, kWarm);
    std::vector<SavedState> states;
    marked.read(text_of(prompt), [](std::string_view) {},
                {.every = static_cast<std::int64_t>(every), .reached = [&] { states.push_back(state_of(marked)); }});
    REQUIRE(states.size() == 3);
    for (std::size_t i = 0; i < states.size(); ++i) {
      TextGenerator part(model, bytes, kWarm);
      part.read(text_of(prompt.substr(0, every * (i + 1))));
      CHECK(states[i].tokens == static_cast<std::int64_t>(every * (i + 1)));
      CHECK(states[i] == state_of(part));
    }
    plain.read(text_of(prompt), [](std::string_view) {});
    CHECK(state_of(marked) == state_of(plain));

    // Tokens are counted on over a state.
    std::vector<std::int64_t> counts;
    TextGenerator on(model, bytes, kWarm);
    on.read(text_of(prompt.substr(0, 100)));
    on.read(text_of(prompt.substr(100, 300)), {},
            {.every = 150, .reached = [&] { counts.push_back(state_of(on).tokens); }});
    CHECK(counts == std::vector<std::int64_t>{150, 300});
  };
  for (const MixerEntry& entry : registry()) {
    if (entry.channel) continue;
    CAPTURE(entry.name);
    const auto model = small_model(entry.name, 256);
    const bool has_length = model->blocks()[0].mixer().memory() == Memory::fixed_length;
    check(*model, has_length ? 120 : 613);  // else longer than a chunk
  }
  for (const char* mixer : {"attention", "gsa", "rwkv7"}) {
    CAPTURE(mixer);
    check(*small_model(mixer, 256, 1, 3), 613);
  }
}

TEST_CASE("text: the state of another model is one clear line") {
  const TemporaryFolder folder;
  const ByteTokenizer bytes;
  const auto gsa = small_model("gsa", 256), attention = small_model("attention", 256);
  TextGenerator from(*gsa, bytes, {}), to(*attention, bytes, {});
  run(from, "abc", 3);
  from.save(folder / "s.h5", "same", "generate");
  CHECK_THROWS_WITH_AS(to.load(folder / "s.h5", "same"), doctest::Contains("has no layers.0.mixer.k"), InputError);
  ModelConfig config = gsa->config();
  config.options["gsa.slots"].assign("6");
  LanguageModel wider(config, false);
  TextGenerator shaped(wider, bytes, {});
  CHECK_THROWS_WITH_AS(shaped.load(folder / "s.h5", "same"),
                       doctest::Contains("is [1, 2, 12, 5], in this model [1, 2, 12, 6]"), InputError);
}

TEST_CASE("text: characters are never split, and an open one goes into the state") {
  const std::string text =
      "a\xe2\x82\xac"
      "b\xf0\x9f\x98\x81.";  // a, euro sign, b, a face of four bytes
  const auto model = speaker(text);
  const ByteTokenizer bytes;
  const TemporaryFolder folder;
  TextGenerator whole(*model, bytes, {});
  std::vector<std::string> pieces;
  whole.read(text_of("a"));
  whole.generate({9, {}}, [&](std::string_view piece) { pieces.emplace_back(piece); });
  CHECK(pieces == std::vector<std::string>{"\xe2\x82\xac", "b", "\xf0\x9f\x98\x81", "."});

  std::string joined;
  for (int part = 0; part < 9; ++part) {
    TextGenerator generator(*model, bytes, {});
    if (part > 0) generator.load(folder / "s.h5", "d");
    const std::string shown = run(generator, part == 0 ? "a" : "", 1);
    CHECK(unfinished_utf8(shown) == 0);
    joined += shown;
    generator.save(folder / "s.h5", "d", "generate");
  }
  CHECK("a" + joined == text);
}

TEST_CASE("text: ends before a stop text, whatever the tokens") {
  const auto model = speaker("Once.upa tim\n");
  const ByteTokenizer bytes;
  const auto stopped = [&](const std::vector<std::string>& stops, TextEnd end) {
    TextGenerator generator(*model, bytes, {});
    TextOutcome outcome;
    const std::string text = run(generator, "O", 12, stops, &outcome);
    CHECK(outcome.end == end);
    return text;
  };
  CHECK(stopped({}, TextEnd::tokens) == "nce.upa tim\n");
  CHECK(stopped({"upa"}, TextEnd::stop_text) == "nce.");
  CHECK(stopped({"zzz", "a tim", " tim!"}, TextEnd::stop_text) == "nce.up");
  CHECK(stopped({"\nmore"}, TextEnd::tokens) == "nce.upa tim\n");  // begun at the end, shown all the same
}

TEST_CASE("text: without a prompt it starts after a newline") {
  const auto model = speaker("\nStart");
  const ByteTokenizer bytes;
  TextGenerator generator(*model, bytes, {});
  CHECK(run(generator, "", 5) == "Start");
  CHECK(generator.generator().tokens() == 6);
}

TEST_CASE("text: a prompt in blocks is read whole and shown whole") {
  const auto model = small_model("gsa", 256);
  const ByteTokenizer bytes;
  std::string prompt;
  for (int i = 0; i < 500; ++i) prompt += "\xc3\xa9 " + std::to_string(i);
  TextGenerator blocks(*model, bytes, {}), whole(*model, bytes, {});
  std::string shown;
  std::size_t at = 0;
  const TextOutcome read = blocks.read(
      [&](std::span<char> block) {
        const std::size_t n = prompt.copy(block.data(), std::min<std::size_t>(block.size(), 1 + at % 601), at);
        at += n;
        return n;
      },
      [&](std::string_view piece) { shown += piece; });
  CHECK(shown == prompt);
  CHECK(read.tokens == static_cast<std::int64_t>(prompt.size()));
  CHECK(run(blocks, "", 30) == run(whole, prompt, 30));
}

TEST_CASE("text: words have their blanks, also after a state") {
  const WordTokenizer words({"the", "cat", "sat", "on"});
  const auto model = small_model("linear_attention", words.vocab_size());
  const TemporaryFolder folder;
  TextGenerator one(*model, words, kWarm), part(*model, words, kWarm), rest(*model, words, kWarm);
  std::string text = run(one, "the cat", 20);
  std::string parts = run(part, "the cat", 8);
  part.save(folder / "s.h5", "d", "generate");
  rest.load(folder / "s.h5", "d");
  parts += run(rest, "", 12);
  CHECK(parts == text);
  const char first = text[0];
  CHECK((first == ' ' || first == '\n'));
}

TEST_CASE("text: a stop request ends reading and making") {
  const auto model = small_model("gsa", 256);
  const ByteTokenizer bytes;
  TextGenerator generator(*model, bytes, {});
  set_time_limit(1e-9);
  TextOutcome outcome;
  CHECK(run(generator, std::string(100000, 'x'), 1000, {}, &outcome) == "");
  CHECK(outcome.end == TextEnd::stop_request);
  CHECK(outcome.tokens == 0);
  reset_stop();
}

TEST_CASE("text: a model and a tokenizer of different vocabularies are refused") {
  const auto model = small_model("gsa", 40);
  const ByteTokenizer bytes;
  CHECK_THROWS_AS(TextGenerator(*model, bytes, {}), InputError);
}

TEST_CASE("text: 20,000 tokens at constant memory") {
  const auto model = small_model("gsa", 256);
  const ByteTokenizer bytes;
  TextGenerator generator(*model, bytes, kWarm);
  run(generator, "warm up", 1000);
  const long before = resident_pages();
  const Index state_before = generator.generator().state_bytes();
  std::size_t made = 0;
  generator.generate({20000, {"never\n\nfound"}}, [&](std::string_view piece) { made += piece.size(); });
  CHECK(made > 0);
  CHECK(generator.generator().state_bytes() == state_before);
  CHECK(resident_pages() - before < 64);  // 256 KB, of which one would be 13 bytes a token
}
