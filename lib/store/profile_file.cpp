#include "store/profile_file.h"

#include <algorithm>
#include <concepts>
#include <type_traits>

namespace quipu {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Columns of a group, written from records or read into them; the same visit serves both.
template <typename Record>
class ColumnWriter {
 public:
  ColumnWriter(H5Writer& file, std::string group, const std::vector<Record>& records)
      : file_(file), group_(std::move(group)), records_(records) {
    file_.group(group_);
  }
  template <typename T>
  void column(const char* name, T Record::*member) {
    const std::string path = group_ + "/" + name;
    if constexpr (std::same_as<T, std::string>) {
      std::string text;
      for (const Record& record : records_) {
        text += record.*member;
        std::replace(text.end() - std::ssize(record.*member), text.end(), '\n', ' ');
        text += '\n';
      }
      file_.write_text(path, text);
    } else {
      using Stored = std::conditional_t<std::floating_point<T>, double,
                                        std::conditional_t<std::same_as<T, bool>, std::uint8_t, std::int64_t>>;
      std::vector<Stored> values;
      for (const Record& record : records_) values.push_back(static_cast<Stored>(record.*member));
      file_.write(path, values);
    }
  }

 private:
  H5Writer& file_;
  std::string group_;
  const std::vector<Record>& records_;
};

template <typename Record>
class ColumnReader {
 public:
  ColumnReader(const H5Reader& file, std::string group, std::vector<Record>& records)
      : file_(file), group_(std::move(group)), records_(records) {}
  template <typename T>
  void column(const char* name, T Record::*member) {
    const std::string path = group_ + "/" + name;
    if constexpr (std::same_as<T, std::string>) {
      fill(path, lines_of(file_.read_text(path)), member);
    } else {
      using Stored = std::conditional_t<std::floating_point<T>, double,
                                        std::conditional_t<std::same_as<T, bool>, std::uint8_t, std::int64_t>>;
      fill(path, file_.read<Stored>(path), member);
    }
  }

 private:
  template <typename Stored, typename T>
  void fill(const std::string& path, const std::vector<Stored>& values, T Record::*member) {
    if (!sized_) records_.resize(values.size());
    sized_ = true;
    if (values.size() != records_.size())
      throw InputError("{}: {} has {} elements, the columns beside it {}; the file is no whole profile", file_.name(),
                       path, values.size(), records_.size());
    for (std::size_t i = 0; i < values.size(); ++i) records_[i].*member = static_cast<T>(values[i]);
  }

  const H5Reader& file_;
  std::string group_;
  std::vector<Record>& records_;
  bool sized_ = false;
};

/// An operation and the row that it belongs to.
struct OpRecord : ProfileOp {
  std::int64_t row = 0;
};

void visit_ceilings(auto&& columns) {
  columns.column("threads", &ProfileCeiling::threads);
  columns.column("flops_per_s", &ProfileCeiling::flops_per_s);
  columns.column("bytes_per_s", &ProfileCeiling::bytes_per_s);
}

void visit_rows(auto&& columns) {
  columns.column("mixer", &ProfileRow::mixer);
  columns.column("mode", &ProfileRow::mode);
  columns.column("length", &ProfileRow::length);
  columns.column("batch", &ProfileRow::batch);
  columns.column("threads", &ProfileRow::threads);
  columns.column("seconds_per_token", &ProfileRow::seconds_per_token);
  columns.column("seconds_per_token_low", &ProfileRow::seconds_per_token_low);
  columns.column("seconds_per_token_high", &ProfileRow::seconds_per_token_high);
  columns.column("repeats", &ProfileRow::repeats);
  columns.column("state_bytes", &ProfileRow::state_bytes);
  columns.column("resident_bytes", &ProfileRow::resident_bytes);
  columns.column("flops_per_token", &ProfileRow::flops_per_token);
  columns.column("bytes_per_token", &ProfileRow::bytes_per_token);
  columns.column("ceiling_share", &ProfileRow::ceiling_share);
  columns.column("memory_bound", &ProfileRow::memory_bound);
  columns.column("note", &ProfileRow::note);
}

void visit_ops(auto&& columns) {
  columns.column("row", &OpRecord::row);
  columns.template column<std::string>("op", &OpRecord::op);
  columns.template column<bool>("backward", &OpRecord::backward);
  columns.template column<double>("calls", &OpRecord::calls);
  columns.template column<double>("seconds", &OpRecord::seconds);
}

}  // namespace

void ProfileFile::write(const Profile& profile) {
  file_.attribute("/", "products", profile.products);
  file_.attribute("/", "simd_target", profile.simd_target);
  visit_ceilings(ColumnWriter(file_, "/ceilings", profile.ceilings));
  visit_rows(ColumnWriter(file_, "/rows", profile.rows));
  std::vector<OpRecord> ops;
  for (std::size_t row = 0; row < profile.rows.size(); ++row)
    for (const ProfileOp& op : profile.rows[row].ops) ops.push_back({op, static_cast<std::int64_t>(row)});
  visit_ops(ColumnWriter(file_, "/ops", ops));
  write_provenance(file_, profile.provenance);
  file_.commit();
}

void save_profile(const std::string& path, const Profile& profile) { ProfileFile(path).write(profile); }

Profile read_profile(const H5Reader& file) {
  Profile profile;
  profile.products = file.text_attribute("/", "products");
  profile.simd_target = file.text_attribute("/", "simd_target");
  visit_ceilings(ColumnReader(file, "/ceilings", profile.ceilings));
  visit_rows(ColumnReader(file, "/rows", profile.rows));
  std::vector<OpRecord> ops;
  visit_ops(ColumnReader(file, "/ops", ops));
  for (const OpRecord& op : ops) {
    if (op.row < 0 || op.row >= std::ssize(profile.rows))
      throw InputError("{}: an operation of row {}, of {} rows; the file is no whole profile", file.name(), op.row,
                       profile.rows.size());
    profile.rows[static_cast<std::size_t>(op.row)].ops.push_back(op);
  }
  profile.provenance = read_provenance(file);
  return profile;
}

Profile load_profile(const std::string& path) { return read_profile(H5Reader(path, {kProfileFormat})); }

}  // namespace quipu
