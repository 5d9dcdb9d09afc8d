#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "text/document_sink.h"

namespace quipu {

class TextReader;

/// What a document is. The documents of a file, one after another, are always exactly its bytes.
enum class DocumentRule {
  kFile,   ///< a file
  kLine,   ///< a line, with its newline; the last one may have none
  kBlank,  ///< a paragraph: lines up to and with the blank lines after them. Blank lines at the beginning of a file
           ///< belong to its first paragraph. A line is blank that has nothing but blanks (see blank.h).
};

/// `file`, `line` or `blank`; UsageError where it is none of them.
DocumentRule parse_document_rule(std::string_view name);

/// Cuts the text of files into documents as it comes, block by block. Holds nothing back but, for kBlank, the blanks at
/// the beginning of a line after a blank one.
class DocumentSplitter {
 public:
  DocumentSplitter(DocumentRule rule, DocumentSink& sink) : rule_(rule), sink_(sink) {}

  void add(std::string_view block);
  /// The file ends here, and its last document with it.
  void end_file();

 private:
  void add_lines(std::string_view block);
  void add_paragraphs(std::string_view block);
  void emit(std::string_view text);
  void end_document();

  DocumentRule rule_;
  DocumentSink& sink_;
  bool open_ = false;           // the document has text
  bool has_words_ = false;      // ... that is not blank
  bool line_is_blank_ = true;   // so far
  bool after_blank_ = false;    // the line before was blank, so that the next one with words begins a document
  std::string line_beginning_;  // blanks of which it is not known yet to which document they belong
};

/// Sends the documents of a text file (plain or gzip; `-`: standard input) to `sink`, in blocks, in bounded memory.
/// InputError as TextReader.
void read_documents(const std::string& path, DocumentRule rule, DocumentSink& sink);
void read_documents(TextReader& reader, DocumentRule rule, DocumentSink& sink);

/// Counts a text. Words are the longest runs of bytes without blanks, as `wc -w` counts them in the C locale; a word
/// ends where its document does.
class TextCounter final : public DocumentSink {
 public:
  void text(std::string_view block) override;
  void end_document() override {
    in_word_ = false;
    ++documents_;
  }

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t words() const { return words_; }
  std::uint64_t documents() const { return documents_; }

 private:
  std::uint64_t bytes_ = 0;
  std::uint64_t words_ = 0;
  std::uint64_t documents_ = 0;
  bool in_word_ = false;
};

}  // namespace quipu
