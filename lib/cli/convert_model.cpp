#include "cli/convert_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/log.h"
#include "cli/console.h"
#include "cli/human.h"
#include "exchange/export_model.h"
#include "exchange/gguf_tokenizer.h"
#include "exchange/import_model.h"
#include "store/text_dataset.h"
#include "text/byte_tokenizer.h"
#include "text/tokenizer_file.h"
#include "train/model_checkpoint.h"

namespace quipu {
namespace {

constexpr const char* kModelHelp =
    R"(Reads a model and writes it in another form. IN is a file of tensors (safetensors, also sharded through its index;
PyTorch's .pth, .pt and .bin; rwkv.cpp's ggmf files; GGUF; NumPy's .npz), the folder of a model, or a checkpoint of
quipu; what it is is told from its content, and nothing that it says is executed.

RWKV-4, 5.1, 5.2, 6 and 7 are told from the names and shapes of their tensors, as they were published. Other models
need the config.json of their folder: GPT-2, Llama, Mistral, and, as flash-linear-attention and transformers store
them, GSA, GLA, RetNet, HGRN2, DeltaNet, Gated DeltaNet, ABC, Mamba, Mamba-2, RWKV-4 and RWKV-7. A GGUF file says in
itself what it is: Llama, GPT-2, Mamba, Mamba-2, RWKV-6 or RWKV-7. Every tensor must have its place in the model, and
the shape that the configuration says; what is left aside is named.

--format quipu writes a checkpoint, which holds the tokenizer too: the one in the GGUF file or the model's folder, or
--tokenizer.
--dtype says in what number format it keeps its matrices: f32; bf16, 2 bytes a number; q8 and q4, 8 and 4 bits with a
scale (q4: and an offset) for every 32 numbers of a row, 1.06 and 0.63 bytes a number. generate and eval-ppl run them
as they are stored, in that much memory. Norms, biases, decays, convolutions and the embedding, with the head where it
is tied to it, stay in f32. A checkpoint of fewer bits is another model than the one it was made of: it does not take
over that one's state. --dtype f32 expands one again. Without --dtype, a checkpoint keeps its formats, and a model
from elsewhere is kept in f32.
--format published writes a folder with model.safetensors and, but for RWKV, config.json, under the published names,
in float32: reading it again gives the same model to the last bit. The tokenizer is written beside it as other programs
have it: tokenizer.json (and for GPT-2's kind vocab.json and merges.txt), tokenizer.model, or RWKV's vocabulary. Those
that were learned here (words, bpe, unigram) no other program has.)";

/// Names of tokenizers in a model's folder; the first that is there is taken.
constexpr std::array kTokenizers{"tokenizer.json", "vocab.json", "tokenizer.model", "rwkv_vocab_v20230424.txt"};

/// The tokenizer that is asked for, or comes with a model; null where there is none.
std::unique_ptr<Tokenizer> find_tokenizer(const TensorSource& source, const std::string& wanted) {
  if (wanted == "bytes") return std::make_unique<ByteTokenizer>();
  if (!wanted.empty()) return load_tokenizer(wanted);
  if (source.format() == "GGUF") return read_gguf_tokenizer(source);
  const auto& beside = source.metadata().companions;
  for (const char* name : kTokenizers) {
    const auto found = std::ranges::find(beside, name, [](const auto& file) { return file.first; });
    if (found != beside.end()) return read_tokenizer_file(found->second);
  }
  return nullptr;
}

std::unique_ptr<Tokenizer> assume_bytes(const TensorSource& source, Index vocab) {
  if (vocab != 256)
    throw InputError("{}: comes without a tokenizer for its {} tokens; give one with --tokenizer", source.name(),
                     vocab);
  log_note("{}: comes without a tokenizer; its 256 tokens are taken for bytes", source.name());
  return std::make_unique<ByteTokenizer>();
}

TokenizerData checked(const TensorSource& source, const Tokenizer& tokenizer, Index vocab) {
  if (tokenizer.vocab_size() > vocab)
    throw InputError("{}: has a vocabulary of {} tokens, the tokenizer {} has {}; give the model's own", source.name(),
                     vocab, describe(tokenizer), tokenizer.vocab_size());
  log_note("tokenizer: {}{}", describe(tokenizer),
           tokenizer.vocab_size() == vocab ? "" : fmt::format(" of the model's {} tokens", grouped(vocab)));
  return tokenizer.serialize();
}

/// The tokenizer that a model is saved with. A folder may do without one.
TokenizerData choose_tokenizer(const TensorSource& source, const ConvertModelOptions& o, Index vocab) {
  const bool folder = o.format == "published";
  try {
    std::unique_ptr<Tokenizer> tokenizer = find_tokenizer(source, o.tokenizer);
    if (tokenizer == nullptr && folder) {
      log_note("{}: comes without a tokenizer; none is written", source.name());
      return {};
    }
    if (tokenizer == nullptr) tokenizer = assume_bytes(source, vocab);
    return checked(source, *tokenizer, vocab);
  } catch (const InputError& error) {
    if (!folder || !o.tokenizer.empty()) throw;
    log_note("its tokenizer is left out: {}", error.what());
    return {};
  }
}

/// A tokenizer's files for other programs; where there are none, it is said why.
std::vector<TokenizerFile> files_of(const TokenizerData& tokenizer) {
  if (tokenizer.kind.empty()) return {};
  try {
    std::vector<TokenizerFile> files = published_tokenizer(tokenizer);
    if (files.empty()) log_note("its tokenizer is left out: no other program has the kind {}", tokenizer.kind);
    return files;
  } catch (const InputError& error) {
    log_note("its tokenizer is left out: {}", error.what());
    return {};
  }
}

/// A model and what a checkpoint of it says.
struct Loaded {
  std::unique_ptr<LanguageModel> model;
  CheckpointFacts facts;
};

Loaded load_own(InputFile input, const ConvertModelOptions& o) {
  const CheckpointFile file(std::move(input));
  if (!o.tokenizer.empty()) throw UsageError("--tokenizer {}: {} has its own; leave it out", o.tokenizer, file.name());
  Loaded loaded{o.dtype.empty() ? load_model(file) : load_model_as(file, parse_number_format(o.dtype)), file.facts()};
  loaded.facts.progress.clear();
  loaded.facts.counters.clear();
  return loaded;
}

Loaded load_foreign(const std::unique_ptr<TensorSource>& source, const ConvertModelOptions& o) {
  ImportedModel imported = import_model(*source, {o.groupnorm_eps, o.skip_unknown},
                                        o.dtype.empty() ? FormatChoice{} : matrices_in(parse_number_format(o.dtype)));
  log_note("{}: {} ({}), {} parameters", source->name(), imported.architecture, source->format(),
           grouped(imported.model->parameters().count()));
  for (const std::string& note : imported.notes) log_note("  {}", note);
  Loaded loaded{std::move(imported.model), {}};
  loaded.facts.tokenizer = choose_tokenizer(*source, o, loaded.model->vocab());
  loaded.facts.provenance.data = {o.input};
  return loaded;
}

/// "12 arrays in f32 (1.2 MB), 4 matrices in q8 (3.4 MB)"
std::string formats_line(const Parameters& parameters) {
  Index bytes = parameters.value_bytes();
  std::map<NumberFormat, std::pair<std::size_t, Index>> packed;
  for (const auto& entry : parameters.packed()) {
    const auto own = static_cast<Index>(entry.parameter->packed().bytes().size());
    auto& [matrices, total] = packed[entry.parameter->format()];
    ++matrices, total += own, bytes -= own;
  }
  std::string text = fmt::format("{} arrays in f32 ({})", parameters.all().size() - parameters.packed().size(),
                                 human_bytes(static_cast<double>(bytes)));
  for (const auto& [format, sum] : packed)
    text += fmt::format(", {} matrices in {} ({})", sum.first, format_name(format),
                        human_bytes(static_cast<double>(sum.second)));
  return text;
}

Status run_model(const ConvertModelOptions& o, const std::string& line) {
  refuse_terminal_output(o.output);
  if (o.format == "published" && o.output == "-")
    throw UsageError("--output -: a published model is a folder; name one");
  if (o.format == "published" && !o.dtype.empty() && o.dtype != "f32")
    throw UsageError("--dtype {}: a published model is written in f32; leave it out with --format published", o.dtype);
  std::error_code ignored;
  Loaded loaded = [&] {
    if (std::filesystem::is_directory(o.input, ignored)) return load_foreign(open_tensor_source(o.input), o);
    InputFile input(o.input);
    if (input.is_hdf5()) return load_own(std::move(input), o);
    refuse_input_as_output(o.output, {o.input});
    return load_foreign(open_tensor_source(std::move(input), o.input), o);
  }();
  const Parameters& parameters = loaded.model->parameters();
  if (o.format == "published") {
    const std::vector<TokenizerFile> files = files_of(loaded.facts.tokenizer);
    log_note("{}: written as {}", o.output, export_model(*loaded.model, o.output, files));
    if (!parameters.packed().empty())
      log_note("  its {} matrices of fewer bits are expanded to f32", parameters.packed().size());
    return Status::kDone;
  }
  loaded.facts.config = to_json(loaded.model->config());
  loaded.facts.provenance.commands.push_back(line);
  if (!o.dtype.empty() || !parameters.packed().empty()) log_note("{}: {}", o.output, formats_line(parameters));
  save_model(o.output, loaded.facts, loaded.model->parameters(), nullptr, nullptr);
  return Status::kDone;
}

}  // namespace

void add_convert_model(Command& tool, ConvertModelOptions& o, const std::string& line) {
  Command& model = tool.command("model", "convert a model from or for other programs", kModelHelp);
  const Section main = model.section();
  add_argument(main, "IN", o.input, true, "a file, or a model's folder; - for standard input");
  required(add_text(main, "-o,--output", o.output, "OUT", "the checkpoint (- for standard output), or the folder"));
  add_choice(main, "--format", o.format, {"quipu", "published"}, "what to write");
  add_choice(main, "--dtype", o.dtype, {"f32", "bf16", "q8", "q4"}, "number format of the matrices");
  add_text(main, "--tokenizer", o.tokenizer, "bytes|FILE|DIR",
           "the model's tokenizer, as in convert text; else its own");
  add_real(main, "--groupnorm-eps", o.groupnorm_eps, above(0),
           "epsilon of RWKV's norm of heads; else what the file says, 1e-5 for RWKV-5 of rwkv.cpp, 64e-5");
  add_flag(main, "--skip-unknown", o.skip_unknown, "leave out tensors that the model has no place for");
  model.runs([&](const Common&) { return run_model(o, line); });
}

}  // namespace quipu
