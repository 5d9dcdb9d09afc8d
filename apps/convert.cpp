#include "cli/app.h"
#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/convert_model.h"
#include "cli/convert_text.h"
#include "cli/file_report.h"
#include "store/average.h"

using namespace quipu;

namespace {

const ToolInfo kInfo = {
    .name = "convert",
    .summary = "make datasets of text, convert and average models, show files",
    .description =
        R"(Makes the files that the other tools read, and says what is in them. A file `-` is standard input or
standard output, so that `convert text -o - - < book.txt | train - -o model.h5` works.)",
    .examples = {{"convert text -o corpus.h5 --tokenizer bpe:4096 --valid 0.05 --test 0.05 book.txt.gz",
                  "A dataset with its own vocabulary, the end of the text held out:"},
                 {"convert text -o other.h5 --tokenizer corpus.h5 other.txt", "Another one with the same vocabulary:"},
                 {"convert text -o gpt2.h5 --tokenizer gpt2:models/gpt2 book.txt.gz", "One with GPT-2's tokenizer:"},
                 {"convert model -o rwkv.h5 --tokenizer rwkv_vocab_v20230424.txt RWKV-x070-World-0.1B.pth",
                  "A model from elsewhere, with its tokenizer:"},
                 {"convert model --format published -o folder model.h5", "The other way:"},
                 {"convert average -o mean.h5 run1.h5 run2.h5", "The mean of two checkpoints:"},
                 {"convert show corpus.h5", "What a file is:"},
                 {"convert show --verbose model.safetensors", "The tensors of a model from elsewhere:"}},
    .config_example = "[text]\ntokenizer = \"bpe:4096\"\nvalid = \"0.05\"",
};

}  // namespace

int main(int argc, char** argv) {
  const std::string line = command_line(argc, argv);
  ConvertTextOptions text;
  ConvertModelOptions model;
  std::string output, shown;
  std::vector<std::string> checkpoints;
  bool verify = false;
  return run_app(kInfo, argc, argv, [&](Command& tool) {
    add_convert_text(tool, text, line);
    add_convert_model(tool, model, line);
    Command& average = tool.command("average", "average checkpoints of one configuration",
                                    "Saves the mean of the parameters. The result can be evaluated and can generate; "
                                    "it cannot be resumed. Models of "
                                    "other programs are made checkpoints first, with convert model.");
    add_arguments(average.section(), "MODEL.h5", checkpoints, true, "checkpoints of equal configuration");
    required(add_text(average.section(), "-o,--output", output, "FILE", "the mean; - for standard output"));
    average.runs([&](const Common&) {
      refuse_terminal_output(output);
      average_checkpoints(checkpoints, output, {line});
      return Status::kDone;
    });
    Command& show =
        tool.command("show", "say what a file is: a dataset, checkpoint or state, or tensors of another program",
                     "Of other programs, it knows safetensors (one file, or sharded through its index), PyTorch's "
                     ".pth, .pt and .bin, "
                     "rwkv.cpp's ggmf files, GGUF and NumPy's .npz, told by their content. Nothing that such a file "
                     "says is executed. "
                     "With --verbose, also lists the data sets or all tensors inside.");
    add_argument(show.section(), "FILE", shown, true, "a file, or a model's folder; - for standard input");
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
