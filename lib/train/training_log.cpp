#include "train/training_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace quipu {
namespace {

/// Bytes of `text` up to the last whole line of a step <= keep_through.
std::size_t kept_bytes(const std::string& text, Index keep_through) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const auto line = nlohmann::json::parse(text.substr(begin, end - begin), nullptr, false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) break;
    if (line["step"].get<Index>() > keep_through) break;
    begin = end + 1;
  }
  return begin;
}

}  // namespace

std::string to_json(const LogLine& line) {
  nlohmann::ordered_json json{
      {"step", line.step}, {"tokens", line.tokens}, {"epoch", line.epoch}, {"loss_nats", line.loss_nats}};
  if (line.valid_loss_nats) json["valid_loss_nats"] = *line.valid_loss_nats;
  json["lr"] = line.learning_rate;
  json["gradient_norm"] = line.gradient_norm;
  json["tokens_per_s"] = line.tokens_per_s;
  json["memory_bytes"] = line.memory_bytes;
  return json.dump();
}

TrainingLog::TrainingLog(const std::string& path, Index keep_through) : path_(path) {
  if (path.empty()) return;
  std::size_t kept = 0;
  struct stat status = {};
  const bool regular = stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  if (regular && keep_through > 0) kept = kept_bytes(InputFile(path).read_all(), keep_through);
  file_ = Descriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_.is_open() || (regular && ftruncate(file_.get(), static_cast<off_t>(kept)) != 0))
    throw InputError("{}: {}; give --log a file that can be written", path, std::strerror(errno));
}

void TrainingLog::write(const LogLine& line) {
  if (!file_.is_open()) return;
  const std::string text = to_json(line) + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(file_.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw InputError("{}: {}; the log is not complete", path_, std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace quipu
