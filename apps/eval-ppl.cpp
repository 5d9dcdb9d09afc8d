#include "base/number.h"
#include "cli/eval_run.h"

using namespace quipu;

namespace {

const ToolInfo kInfo = {
    .name = "eval-ppl",
    .summary = "measure how well a model predicts a text",
    .description =
        R"(Scores every token of a dataset's split or of a text, which is tokenized with the model's tokenizer, each
exactly once, and reports the perplexity per token and per word and the bits per byte. A model with a fixed-size memory
reads a stream of any length in constant memory.

The first token of a document has nothing before it and is not scored, under any protocol, unless --prefix is given;
the report says how many such tokens there were. Words and bytes are those of the scored text, so that bits per byte
and perplexity per word compare across tokenizers. (A word counts where its last byte is in a scored token.) A document
never sees another one.

Protocols, the context that a token is predicted from:

  stream     all tokens of its document before it
  blocks:W   disjoint windows, each afresh: inputs 0 .. W-1 predict tokens 1 .. W, inputs W .. 2W-1 the next W
  slide:W:S  windows of W inputs advanced by S; the S last predictions count (all in the first window)
  last:N/W   the same as slide:W:N, "the last N of W"

Without --protocol, models of fixed memory are scored by stream, others by blocks of their training length.

--by-position sums the losses up by the length of the context, in bins of powers of two: does the model use what lies
a thousand, ten thousand tokens back? The standard errors are over stretches of 256 tokens of the text, each of them one
sample; a bin that lies in fewer than four has none. --plot draws the same.

--per-token writes a line for each scored token: its position, id, text (escaped) and negative log likelihood in nats,
parted by tabs. --per-line reads a text, each line a document, and answers each line when it ends: line number, tokens,
nats, bits per byte, perplexity per token ("-" where no token was scored). With these the report goes to standard
error.)",
    .examples = {{"eval-ppl gsa.h5 corpus.h5", "The test split, or else the validation split:"},
                 {"eval-ppl gsa.h5 corpus.h5 --split valid --protocol blocks:64 --json", "As nanoGPT scores:"},
                 {"eval-ppl gsa.h5 book.txt --plot loss.svg", "Does a longer context help? A table and a plot:"},
                 {"tail -f log | eval-ppl gsa.h5 - --per-line", "How surprising is each line of a log:"}},
    .config_example = "protocol = \"slide:512:128\"\nmax-ppl = 20",
    .has_gate = true,
};

void add_options(Command& tool, EvalRequest& o) {
  const Section main = tool.section("Data"), scoring = tool.section("Scoring"), output = tool.section("Output");
  add_argument(main, "MODEL.h5", o.model, true, "checkpoint that train wrote; - for standard input");
  add_argument(main, "DATA.h5|TEXT", o.data, false, "dataset, or a text, plain or gzip; - for standard input");
  add_text(main, "--split", o.split, "NAME", "split of the dataset (default: test, else valid)");
  add_choice(main, "--documents", o.documents, {"file", "line", "blank"}, "what a document of a text is");
  add_text(scoring, "--protocol", o.protocol, "stream|blocks:W|slide:W:S|last:N/W", "context of each token");
  add_text(scoring, "--prefix", o.prefix, "TEXT", "read before each document, so that its first token is scored too");
  add_count(scoring, "--batch-tokens", o.batch_tokens, 1, Index{1} << 24, "tokens that the model reads at a time");
  add_texts(scoring, "--set", o.set, "KEY=VALUE",
            "option of a mixer for this run, where its weights allow: window=64, memory=400, same_length=true");
  add_real(scoring, "--max-ppl", o.max_ppl, above(0), "end with status 3 where the perplexity per token is above this");
  auto& position = add_flag(output, "--by-position", o.by_position, "loss against the length of the context");
  auto& plot = add_text(output, "--plot", o.plot, "FILE.svg|png", "draw --by-position, which it implies, with gnuplot");
  auto& tokens = add_flag(output, "--per-token", o.per_token, "a line for each token, as TSV");
  auto& lines = add_flag(output, "--per-line", o.per_line, "a score for each line of a text as soon as it ends");
  exclude(lines, tokens);
  exclude(lines, position);
  exclude(lines, plot);
}

}  // namespace

int main(int argc, char** argv) {
  EvalRequest o;
  return run_app(kInfo, argc, argv, [&](Command& tool) {
    add_options(tool, o);
    tool.runs([&](const Common& common) { return run_eval(o, common); });
  });
}
