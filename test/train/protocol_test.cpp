#include "train/protocol.h"

#include <doctest/doctest.h>

#include "base/error.h"

using namespace quipu;

TEST_CASE("protocols are windows and strides") {
  CHECK(parse_protocol("stream").is_stream());
  const Protocol blocks = parse_protocol("blocks:64");
  CHECK(blocks.window == 64);
  CHECK(blocks.stride == 64);
  CHECK(blocks.name == block_protocol(64).name);
  const Protocol slide = parse_protocol("slide:512:128");
  CHECK(slide.window == 512);
  CHECK(slide.stride == 128);
  const Protocol last = parse_protocol("last:256/512");
  CHECK(last.window == 512);
  CHECK(last.stride == 256);
  CHECK(last.context() == "257 to 512 tokens (fewer among the first 257 of a document)");
}

TEST_CASE("what is no protocol is refused with a hint") {
  for (const char* text : {"", "Stream", "blocks", "blocks:", "blocks:0", "blocks:-1", "blocks:x", "slide:5",
                           "slide:4:5", "last:5/4", "last:5:8", "stream:1"})
    CHECK_THROWS_AS(parse_protocol(text), UsageError);
}
