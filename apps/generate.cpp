#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"
#include "cli/command_line.h"
#include "cli/generate_options.h"
#include "cli/generate_report.h"
#include "train/model_checkpoint.h"

using namespace quipu;

namespace {

const ToolInfo kInfo = {
    .name = "generate",
    .summary = "go on with a text, one token at a time",
    .description =
        R"(Reads a prompt with the model of a checkpoint and goes on with it. A model with a fixed-size memory
does so at a constant time per token and in constant memory, however long the text.

The text goes to standard output as it is made, in whole characters: the bytes of a character that is not finished at
the end are left out (--state-out keeps them). A prompt on the command line is shown before it, one from a file or
from standard input is not; --echo and --no-echo say otherwise. A prompt is read as it is, a newline at its end
included. Without a prompt the text starts after the token that ends documents, where the tokenizer has one, else
after a newline.

The most likely token is taken unless a sampling option is given; --top-k, --top-p and --min-p imply --temperature 1.
They act in this order: repetition penalty, temperature, top-k, top-p, min-p. What is drawn depends on --seed and the
position in the stream alone, so that a rerun gives the same text.

With --state-out the memory is kept when the text has ended, also where a signal or a closed pipe ended it; with
--state-in a run goes on from there, exactly as if one process had done both. A state fits the model that made it.

--state-every N keeps it at several points of one reading, too: whenever N more tokens of the stream have been read of
the prompt, in a file of its own whose name has the number of tokens before its ending: of --state-out book.h5,
book-000010000.h5, book-000020000.h5 and so on. Such a state is, to the last bit, that of a run whose prompt ends there,
and the reading goes on as if it had not been taken. A stream that --state-in began counts its tokens on.)",
    .examples = {{"generate gsa.h5 \"Once upon\" --temperature 0.8 --top-p 0.95", "Go on with two words:"},
                 {"generate gsa.h5 - --tokens 0 --state-out book.state.h5 < book.txt", "Read a book, once:"},
                 {"generate gsa.h5 - --tokens 0 --state-out b.h5 --state-every 100k < book.txt",
                  "With states on the way:"},
                 {"generate gsa.h5 \" The end\" --state-in book.state.h5", "Go on from the book, many times:"}},
    .config_example = "temperature = 0.8\ntop-p = 0.95\nstop = [\"THE END\"]",
    .stops_cleanly = true,
};

/// Standard output, handed on at once unless it is a file.
TextSink output() {
  struct stat info {};
  const bool flush = fstat(STDOUT_FILENO, &info) != 0 || !S_ISREG(info.st_mode);
  return [flush](std::string_view text) {
    write_output(text);
    if (flush) flush_output();
  };
}

Status run(GenerateOptions& o, const Common& common, const std::string& line) {
  settle(o, common);
  auto file = std::make_unique<const CheckpointFile>(o.model);
  const auto model = load_model(*file);
  const auto tokenizer = make_tokenizer(file->facts().tokenizer);
  const std::string digest = file->parameter_digest();
  file.reset();  // gives its memory back before the work begins
  TextGenerator generator(*model, *tokenizer, o.sampling);
  if (!o.state_in.empty()) generator.load(o.state_in, digest);

  std::string text;
  const TextSink sink = common.json ? [&text](std::string_view piece) { text += piece; } : output();
  std::vector<std::string> states;
  const auto save_mark = [&] {
    states.push_back(state_file_at(o.state_out, generator.generator().tokens()));
    generator.save(states.back(), digest, line);
  };
  const auto prompt = generator.read(o.prompt_source(), o.shows_prompt(common) ? sink : nullptr,
                                     {.every = o.state_every.value_or(0), .reached = save_mark});
  std::exception_ptr closed;
  TextOutcome made;
  try {
    made = generator.generate(o.text, sink);
    if (!common.json && isatty(STDOUT_FILENO) == 1) sink("\n");
  } catch (const ClosedPipe&) {
    closed = std::current_exception();  // a quiet end, but not before the state is saved
  }
  if (!o.state_out.empty()) {
    generator.save(o.state_out, digest, line);
    states.push_back(o.state_out);
  }
  if (closed) std::rethrow_exception(closed);
  report_generation({prompt, made, generator.generator(), states}, common.json ? &text : nullptr);
  return made.end == TextEnd::stop_request ? Status::kStopped : Status::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  GenerateOptions options;
  const std::string line = command_line(argc, argv);
  return run_app(kInfo, argc, argv, [&](Command& command) {
    add_options(command, options);
    command.runs([&](const Common& common) { return run(options, common, line); });
  });
}
