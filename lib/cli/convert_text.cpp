#include "cli/convert_text.h"

#include <algorithm>

#include "base/log.h"
#include "base/number.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/progress.h"

namespace quipu {
namespace {

constexpr const char* kTextHelp =
    R"(Makes a dataset of text files, plain or gzip; they are the training split. --valid and --test name another file, or
are a fraction such as 0.1: then the end of the training text is taken, test behind valid. Of n bytes, training keeps
the first floor(n (1 - valid - test)). Where documents are files, the text is cut exactly there (but inside no
character of UTF-8), and what follows is a document of its own; where documents are lines or paragraphs, the one that
the cut falls into stays whole, before it.

A tokenizer is learned from the training split alone. bytes: 256 tokens; words[:N]: blank-separated words, the N most
frequent, with one token for the end of a line; bpe:N and unigram:N: N pieces, lossless.

Or a tokenizer is taken as it is: that of a dataset or a checkpoint, or one that another program made, told from its
content: GPT-2's vocab.json and merges.txt (gpt2:DIR, or either file), a tokenizer.json of Hugging Face with byte-level
BPE (GPT-2, GPT-NeoX, Pythia, Mamba, RWKV-4, Llama 3, Qwen), the vocabulary of RWKV's World models, a SentencePiece
.model, llama2.c's tokenizer.bin, or a folder with one of them. What such a file asks for that is not read here is
refused by its name. These end each document with their token for that, where they have one. A tokenizer that
normalizes text, or that has no token for some characters, does not give back exactly the text it was given.

Strings such as <|endoftext|> in a text are text; with --special-tokens they are the special tokens they stand for.)";

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == text.npos && text.find_first_of("0123456789") < 2;
}

void add_split(TextDatasetSpec& spec, const std::string& name, const std::vector<std::string>& files) {
  const auto same = [&](const auto& split) { return split.first == name; };
  const auto found = std::ranges::find_if(spec.splits, same);
  if (found == spec.splits.end()) return spec.splits.emplace_back(name, files), void();
  found->second.insert(found->second.end(), files.begin(), files.end());
}

/// --valid or --test: a fraction or a file.
void add_held_out(TextDatasetSpec& spec, const std::string& name, const std::string& value, double& share) {
  if (is_number(value))
    share = parse_real("--" + name, value, {.min = 0, .max = 1, .open_min = true, .open_max = true});
  else if (!value.empty())
    add_split(spec, name, {value});
}

Status run_text(ConvertTextOptions& o, const std::string& command) {
  TextDatasetSpec& spec = o.spec;
  refuse_terminal_output(spec.output);
  refuse_input_as_output(spec.output, {spec.tokenizer});
  if (!o.files.empty()) add_split(spec, "train", o.files);
  add_held_out(spec, "valid", o.valid, spec.valid_share);
  add_held_out(spec, "test", o.test, spec.test_share);
  for (const std::string& split : o.splits) {
    const std::size_t at = split.find('=');
    if (at == 0 || at == split.npos || at + 1 == split.size())
      throw UsageError("--split {}: is not NAME=FILE; give for example --split novel=emma.txt", split);
    add_split(spec, split.substr(0, at), {split.substr(at + 1)});
  }
  spec.documents = parse_document_rule(o.documents);
  spec.commands = {command};
  Progress progress("convert", "bytes", 0);
  spec.on_progress = [&](const char* stage, std::uint64_t bytes) {
    progress.update(static_cast<double>(bytes), stage);
  };
  const TextDatasetSummary summary = make_text_dataset(spec);
  progress.finish();

  log_note("{}: tokenizer {}, vocabulary {}", spec.output == "-" ? "stdout" : spec.output, summary.tokenizer,
           grouped(summary.vocab));
  for (const auto& [name, split] : summary.splits)
    log_note("  {}: {} tokens, {} documents, {} words, {} bytes, {:.3f} bytes per token", name,
             grouped(static_cast<Index>(split.tokens)), grouped(static_cast<Index>(split.documents)),
             grouped(static_cast<Index>(split.words)), grouped(static_cast<Index>(split.bytes)),
             static_cast<double>(split.bytes) / static_cast<double>(split.tokens));
  return Status::kDone;
}

}  // namespace

void add_convert_text(Command& tool, ConvertTextOptions& o, const std::string& line) {
  Command& text = tool.command("text", "make a dataset of text", kTextHelp);
  const Section main = text.section();
  add_arguments(main, "FILE", o.files, false, "training text, plain or gzip; - for standard input");
  required(add_text(main, "-o,--output", o.spec.output, "DATA.h5", "the dataset; - for standard output"));
  add_text(main, "--tokenizer", o.spec.tokenizer, "bytes|words[:N]|bpe:N|unigram:N|FILE|DIR",
           "how text becomes tokens");
  add_flag(main, "--special-tokens", o.spec.special_tokens, "read strings that stand for special tokens as these");
  add_choice(main, "--documents", o.documents, {"file", "line", "blank"},
             "what a document is: a file, a line, or a paragraph (up to the blank lines behind it)");
  add_text(main, "--valid", o.valid, "FILE|FRACTION", "validation text, or the share of the training text to hold out");
  add_text(main, "--test", o.test, "FILE|FRACTION", "the same for the test split");
  add_texts(main, "--split", o.splits, "NAME=FILE", "a file for any split; may be given several times");
  text.runs([&](const Common&) { return run_text(o, line); });
}

}  // namespace quipu
