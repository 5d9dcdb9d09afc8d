#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/log.h"
#include "base/number.h"
#include "cli/app.h"
#include "cli/command_line.h"
#include "cli/file_report.h"
#include "cli/human.h"
#include "cli/progress.h"
#include "store/average.h"
#include "store/text_dataset.h"

using namespace quipu;

namespace {

const ToolInfo kInfo = {
    .name = "convert",
    .summary = "make datasets of text, average checkpoints, show files",
    .description =
        R"(Makes the files that the other tools read, and says what is in them. A file `-` is standard input or
standard output, so that `convert text -o - - < book.txt | train - -o model.h5` works.)",
    .examples = {{"convert text -o corpus.h5 --tokenizer bpe:4096 --valid 0.05 --test 0.05 book.txt.gz",
                  "A dataset with its own vocabulary, the end of the text held out:"},
                 {"convert text -o other.h5 --tokenizer corpus.h5 other.txt", "Another one with the same vocabulary:"},
                 {"convert average -o mean.h5 run1.h5 run2.h5", "The mean of two checkpoints:"},
                 {"convert show corpus.h5", "What a file is:"}},
    .config_example = "[text]\ntokenizer = \"bpe:4096\"\nvalid = \"0.05\"",
};

constexpr const char* kTextHelp =
    R"(Makes a dataset of text files, plain or gzip; they are the training split. --valid and --test name another file, or
are a fraction such as 0.1: then the end of the training text is taken, test behind valid. Of n bytes, training keeps
the first floor(n (1 - valid - test)). Where documents are files, the text is cut exactly there (but inside no
character of UTF-8), and what follows is a document of its own; where documents are lines or paragraphs, the one that
the cut falls into stays whole, before it.

A tokenizer is learned from the training split alone. bytes: 256 tokens; words[:N]: blank-separated words, the N most
frequent, with one token for the end of a line; bpe:N and unigram:N: N pieces, lossless; or a dataset or a checkpoint,
whose tokenizer is used.)";

struct TextOptions {
  TextDatasetSpec spec;
  std::string valid, test, documents = "file";
  std::vector<std::string> splits, files;
};

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

void refuse_terminal(const std::string& output) {
  if (output == "-" && isatty(STDOUT_FILENO) == 1)
    throw UsageError("--output -: is a terminal, and the result is no text; give a file, or pipe it on");
}

Status run_text(TextOptions& o, const std::string& command) {
  TextDatasetSpec& spec = o.spec;
  refuse_terminal(spec.output);
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

void add_text_command(Command& tool, TextOptions& o, const std::string& line) {
  Command& text = tool.command("text", "make a dataset of text", kTextHelp);
  const Section main = text.section();
  add_arguments(main, "FILE", o.files, false, "training text, plain or gzip; - for standard input");
  required(add_text(main, "-o,--output", o.spec.output, "DATA.h5", "the dataset; - for standard output"));
  add_text(main, "--tokenizer", o.spec.tokenizer, "bytes|words[:N]|bpe:N|unigram:N|FILE", "how text becomes tokens");
  add_choice(main, "--documents", o.documents, {"file", "line", "blank"},
             "what a document is: a file, a line, or a paragraph (up to the blank lines behind it)");
  add_text(main, "--valid", o.valid, "FILE|FRACTION", "validation text, or the share of the training text to hold out");
  add_text(main, "--test", o.test, "FILE|FRACTION", "the same for the test split");
  add_texts(main, "--split", o.splits, "NAME=FILE", "a file for any split; may be given several times");
  text.runs([&](const Common&) { return run_text(o, line); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string line = command_line(kInfo.name, argc, argv);
  TextOptions text;
  std::string output, shown;
  std::vector<std::string> checkpoints;
  bool verify = false;
  return run_app(kInfo, argc, argv, [&](Command& tool) {
    add_text_command(tool, text, line);
    Command& average = tool.command(
        "average", "average checkpoints of one configuration",
        "Saves the mean of the parameters. The result can be evaluated and can generate; it cannot be resumed.");
    add_arguments(average.section(), "MODEL.h5", checkpoints, true, "checkpoints of equal configuration");
    required(add_text(average.section(), "-o,--output", output, "FILE", "the mean; - for standard output"));
    average.runs([&](const Common&) {
      refuse_terminal(output);
      average_checkpoints(checkpoints, output, {line});
      return Status::kDone;
    });
    Command& show = tool.command("show", "say what a dataset, checkpoint or state is",
                                 "With --verbose, also lists the data sets inside.");
    add_argument(show.section(), "FILE", shown, true, "a dataset, checkpoint or state; - for standard input");
    add_flag(show.section(), "--verify", verify, "read all of the file and check it against its digests");
    show.runs([&](const Common& common) {
      const FileDescription about = describe_file(shown, verify);
      const std::string name = shown == "-" ? "stdin" : shown;
      if (common.json)
        print_json(file_report_json(name, about));
      else
        print_text(file_report_text(name, about, common.verbose));
      return Status::kDone;
    });
  });
}
