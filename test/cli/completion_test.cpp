#include "cli/completion.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "cli/dummy_tool.h"

using namespace quipu;
using dummy::run;
using dummy::run_multi;
using dummy::run_plain;

namespace {

/// What bash offers for the last of `words`, sorted.
std::string offers(dummy::Main tool, const std::string& function, const std::string& words) {
  const dummy::Folder folder;
  folder.write("script", run(tool, {"--dump-completion"}).out);
  folder.write("a file.txt", "");
  folder.write("ask", "source ./script\nCOMP_WORDS=(" + words + ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n" +
                          function + "\nprintf '%s\\n' \"${COMPREPLY[@]}\" | LC_ALL=C sort >offers\n");
  const std::string command = "cd " + folder.path.string() + " && bash ./ask 2>errors";
  CHECK(std::system(command.c_str()) == 0);
  CHECK(folder.read("errors") == "");
  return folder.read("offers");
}

}  // namespace

TEST_CASE("completion: options, choices, files") {
  CHECK(offers(run_plain, "_quipu_plain", "plain --st") == "--steps\n--stop\n");
  CHECK(offers(run_plain, "_quipu_plain", "plain --schedule ''") == "constant\ncosine\nlinear\n");
  CHECK(offers(run_plain, "_quipu_plain", "plain --schedule l") == "linear\n");
  CHECK(offers(run_plain, "_quipu_plain", "plain a") == "a file.txt\nask\n");
  CHECK(offers(run_plain, "_quipu_plain", "plain -o 'a '") == "a file.txt\n");
}

TEST_CASE("completion: commands") {
  CHECK(offers(run_multi, "_quipu_multi", "multi ''") == "show\ntext\n");
  CHECK(offers(run_multi, "_quipu_multi", "multi te") == "text\n");
  CHECK(offers(run_multi, "_quipu_multi", "multi text --tok") == "--tokenizer\n");
  CHECK(offers(run_multi, "_quipu_multi", "multi show --tok") == "\n");
  CHECK(offers(run_multi, "_quipu_multi", "multi --see") == "--seed\n");
  CHECK(offers(run_multi, "_quipu_multi", "multi text --tokenizer w") == "words\n");
}
