#pragma once
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "store/byte_cursor.h"

namespace quipu {

/// A handler of the events of nlohmann's parser that refuses every one of them, names the file, and knows how deep it
/// stands. A reader of a JSON format overrides what its format has; so a text is read without a tree in memory, and one
/// that is nested deeply is refused before anything recurses over it.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// `where` is the file's name, `what` the text in it ("the header").
  JsonEvents(const std::string& where, const char* what, std::size_t deepest = 64)
      : where_(where), what_(what), deepest_(deepest) {}

  /// Reads a text. Throws InputError where it is no JSON.
  void parse(std::string_view text) { nlohmann::json::sax_parse(text.begin(), text.end(), this); }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    throw InputError("{}: {} has the negative number {}; get the file again", where_, what_, value);
  }
  bool number_unsigned(number_unsigned_t) override { return unexpected("a number"); }
  bool number_float(number_float_t, const string_t& text) override {
    throw InputError("{}: {} has the number {} where a whole number below 2^64 belongs; get the file again", where_,
                     what_, shown_name(text));
  }
  bool string(string_t&) override { return unexpected("a text"); }
  bool binary(binary_t&) override { return unexpected("bytes"); }
  bool key(string_t&) override { return unexpected("a key"); }
  bool start_object(std::size_t) override { return deeper(); }
  bool end_object() override { return shallower(); }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_array() override { return shallower(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw InputError("{}: {} is no JSON at byte {} of it; get the file again", where_, what_, position);
  }

 protected:
  const std::string& where() const { return where_; }
  const char* what() const { return what_; }
  /// How many objects and arrays are open.
  std::size_t depth() const { return depth_; }

  [[noreturn]] bool unexpected(const char* found) const {
    throw InputError("{}: {} has {} where it does not belong; get the file again", where_, what_, found);
  }

 private:
  bool deeper() {
    if (++depth_ > deepest_) {
      throw InputError("{}: {} is nested more than {} deep; refused", where_, what_, deepest_);
    }
    return true;
  }
  bool shallower() {
    --depth_;
    return true;
  }

  const std::string& where_;
  const char* what_;
  std::size_t deepest_;
  std::size_t depth_ = 0;
};

/// Accepts any JSON that is not nested too deeply.
class JsonCheck : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool key(string_t&) override { return true; }
};

}  // namespace quipu
