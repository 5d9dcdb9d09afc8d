#pragma once
#include <string_view>

namespace quipu {

/// Takes documents in order, each in one or more blocks of its text followed by end_document(). Where a document is
/// cut into blocks means nothing. Documents are not empty.
class DocumentSink {
 public:
  virtual ~DocumentSink() = default;
  virtual void text(std::string_view block) = 0;
  virtual void end_document() = 0;
};

}  // namespace quipu
