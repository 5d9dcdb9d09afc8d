#pragma once
#include <cstdint>
#include <vector>

#include "text/document_sink.h"

namespace quipu {

/// Divides documents among sinks by their place in the text: the first share of the bytes to the first sink, and so on.
class CorpusDivider final : public DocumentSink {
 public:
  struct Share {
    DocumentSink* sink;
    double fraction;  ///< of the bytes
  };

  /// Where a share ends inside a document. kInside: there; the rest of the document is a document of the next share
  /// (a character of UTF-8 stays whole). kAfter: behind it.
  enum class Cut { kInside, kAfter };

  /// Shares in the order of the text; their fractions are 0 or more and sum to 1 (UsageError otherwise). The sinks must
  /// outlive the divider. `total_bytes`: of all documents to come; a share ends at the product rounded down.
  CorpusDivider(std::vector<Share> shares, std::uint64_t total_bytes, Cut cut);

  void text(std::string_view block) override;
  void end_document() override;

 private:
  /// Bytes of `block` that go to the present share, after going on to the next one where this one is full.
  std::size_t fitting(std::string_view block);

  std::vector<DocumentSink*> sinks_;
  std::vector<std::uint64_t> ends_;  // in bytes of the whole text; the last share has no end
  Cut cut_;
  std::size_t share_ = 0;
  std::uint64_t position_ = 0;
  bool open_ = false;
};

}  // namespace quipu
