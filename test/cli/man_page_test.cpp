#include "cli/man_page.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "cli/dummy_tool.h"

using namespace quipu;
using dummy::run;
using dummy::run_multi;
using dummy::run_plain;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("man page: sections, options and their defaults come from the parser") {
  const dummy::Outcome outcome = run(run_plain, {"--dump-man"});
  REQUIRE(outcome.status == 0);
  const std::string& page = outcome.out;
  for (const char* title : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "CONFIGURATION",
                            "EXAMPLES", "SEE ALSO"}) {
    CHECK(has(page, ".SH \"" + std::string(title) + "\"\n"));
  }
  CHECK(has(page, "plain \\- show what the command line said\n"));
  CHECK(has(page, "\\fBplain\\fR [\\fIOPTIONS\\fR] \\fIDATA.h5\\fR\n"));
  CHECK(has(page, ".SS \"Optimiser\"\n"));
  CHECK(has(page, "\\fB\\-n\\fR, \\fB\\-\\-steps\\fR \\fIN\\fR\nSteps to take. Default: 2000.\n"));
  CHECK(has(page, "\\fIKEY=VALUE\\fR ...\nAn option of the mixer. May be given several times.\n"));
  CHECK(has(page, "\\&.not a macro \\en"));
  CHECK(has(page, "\n75\n"));
  CHECK(has(page, "\n3\n"));
  CHECK(has(page, "set = [\"a=1\", \"b=2\"]\n"));
  CHECK_FALSE(has(page, "dump\\-completion"));
}

TEST_CASE("man page: commands have their own options") {
  const std::string page = run(run_multi, {"--dump-man"}).out;
  CHECK(has(page, "\\fBmulti text\\fR [\\fIOPTIONS\\fR] \\fIFILE\\fR ... \\fB\\-o\\fR \\fIFILE\\fR\n"));
  CHECK(has(page, ".SH \"MULTI TEXT\"\n"));
  CHECK(has(page, ".SH \"MULTI SHOW\"\n"));
  CHECK(has(page, "The dataset. Required."));
  CHECK_FALSE(has(page, "\n75\n"));
  CHECK_FALSE(has(page, "\n3\n"));
}

TEST_CASE("man page: renders without warnings") {
  if (std::system("command -v groff >/dev/null") != 0) {
    MESSAGE("groff is not installed");
    return;
  }
  const dummy::Folder folder;
  for (const dummy::Main tool : {run_plain, run_multi}) {
    const std::string page = folder.write("page.1", run(tool, {"--dump-man"}).out);
    const std::string command =
        "groff -man -Tutf8 -ww -P-cbou -rLL=90n " + page + " >" + page + ".txt 2>" + page + ".err";
    CHECK(std::system(command.c_str()) == 0);
    CHECK(folder.read("page.1.err") == "");
    const std::string shown = folder.read("page.1.txt");
    CHECK(has(shown, "EXIT STATUS"));
    if (tool == run_plain) CHECK(has(shown, "as it stands 'quoted'"));
    if (tool == run_plain) CHECK(has(shown, ".not a macro \\n"));
  }
}
