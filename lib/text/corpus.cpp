#include "text/corpus.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "text/blank.h"
#include "text/text_reader.h"

namespace quipu {

DocumentRule parse_document_rule(std::string_view name) {
  if (name == "file") return DocumentRule::kFile;
  if (name == "line") return DocumentRule::kLine;
  if (name == "blank") return DocumentRule::kBlank;
  throw UsageError("documents: '{}' is unknown; give file, line or blank", name);
}

void DocumentSplitter::emit(std::string_view text) {
  if (text.empty()) return;
  open_ = true;
  sink_.text(text);
}

void DocumentSplitter::end_document() {
  if (open_) sink_.end_document();
  open_ = false;
  has_words_ = false;
}

void DocumentSplitter::add(std::string_view block) {
  if (rule_ == DocumentRule::kFile) return emit(block);
  if (rule_ == DocumentRule::kLine) return add_lines(block);
  add_paragraphs(block);
}

void DocumentSplitter::add_lines(std::string_view block) {
  while (!block.empty()) {
    const std::size_t newline = block.find('\n');
    if (newline == block.npos) return emit(block);
    emit(block.substr(0, newline + 1));
    end_document();
    block.remove_prefix(newline + 1);
  }
}

void DocumentSplitter::add_paragraphs(std::string_view block) {
  std::size_t sent = 0;  // block[sent, at) is text of the open document that is still to be emitted
  for (std::size_t at = 0; at < block.size();) {
    if (!line_is_blank_) {
      at = std::min(block.find('\n', at), block.size() - 1) + 1;
      line_is_blank_ = block[at - 1] == '\n';
      continue;
    }
    const bool held = after_blank_;
    const char c = block[at];
    if (!is_blank(c)) {
      if (held) {
        emit(block.substr(sent, at - sent));
        sent = at;
        end_document();
        emit(line_beginning_);
        line_beginning_.clear();
      }
      line_is_blank_ = after_blank_ = false;
      has_words_ = true;
      ++at;
    } else if (held && c != '\n') {
      emit(block.substr(sent, at - sent));
      line_beginning_ += c;
      sent = ++at;
    } else {
      if (held && !line_beginning_.empty()) {
        emit(line_beginning_);
        line_beginning_.clear();
      }
      ++at;
      if (c == '\n') after_blank_ = has_words_;
    }
  }
  emit(block.substr(sent));
}

void DocumentSplitter::end_file() {
  emit(line_beginning_);
  end_document();
  line_beginning_.clear();
  line_is_blank_ = true;
  after_blank_ = false;
}

void read_documents(const std::string& path, DocumentRule rule, DocumentSink& sink) {
  TextReader reader(path);
  read_documents(reader, rule, sink);
}

void read_documents(TextReader& reader, DocumentRule rule, DocumentSink& sink) {
  constexpr std::size_t kBlockBytes = 1 << 20;
  DocumentSplitter splitter(rule, sink);
  std::vector<char> block(kBlockBytes);
  while (const std::size_t got = reader.read(block)) splitter.add({block.data(), got});
  splitter.end_file();
}

void TextCounter::text(std::string_view block) {
  bytes_ += block.size();
  std::uint64_t words = 0;
  bool in_word = in_word_;
  for (const char c : block) {
    const bool word = !is_blank(c);
    words += static_cast<std::uint64_t>(word && !in_word);
    in_word = word;
  }
  words_ += words;
  in_word_ = in_word;
}

}  // namespace quipu
