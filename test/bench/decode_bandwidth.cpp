// Single-stream decoding of a random model, in every number format, as a fraction of the read bandwidth that is probed
// just before and after with as many threads; reading a prompt of 512 tokens; and peak memory against the weights.
//   decode_bandwidth [MIXER LAYERS DIM VOCAB [FORMATS [THREADS [SECONDS]]]]   e.g. rwkv4 12 768 50277 f32,q8 1,2 1
// Repeats whose two probes differ by more than 10 % are dropped; medians of the others, as a table in Markdown.
#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "models/language_model.h"
#include "tensor/kernels.h"
#include "train/generator.h"

namespace {

using namespace quipu;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::stringstream in(list);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

/// Bytes per second of sums over an array far larger than the caches' share of one core.
double probe(const Tensor& array, int threads) {
  const Index block = 1 << 18, blocks = array.count() / block;
  std::vector<Real> sums(static_cast<std::size_t>(blocks));
  double best = 0;
  for (int pass = 0; pass < 2; ++pass) {
    const double start = now_s();
#pragma omp parallel for schedule(static) num_threads(threads)
    for (Index i = 0; i < blocks; ++i)
      sums[static_cast<std::size_t>(i)] = kernels::sum(array.data() + i * block, block);
    best = std::max(best, static_cast<double>(blocks * block) * sizeof(Real) / (now_s() - start));
  }
  return best;
}

double median(std::vector<double> x) {
  if (x.empty()) return 0;
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

/// Tokens per second of steps for about `seconds`.
double decode(const LanguageModel& model, double seconds) {
  ModelState state = model.initial_state(1);
  Scratch scratch;
  std::vector<Real> logits(static_cast<std::size_t>(model.vocab()));
  const Matrix out{logits.data(), 1, model.vocab(), model.vocab()};
  std::int32_t token = 1;
  for (int i = 0; i < 2; ++i) model.step({&token, 1}, state, scratch, out);
  std::vector<double> times;
  for (const double start = now_s(); now_s() - start < seconds;) {
    const double before = now_s();
    model.step({&token, 1}, state, scratch, out);
    times.push_back(now_s() - before);
    token = static_cast<std::int32_t>((token * 7 + 3) % model.vocab());
  }
  return 1 / median(times);
}

double read_prompt(const LanguageModel& model) {
  std::vector<std::int32_t> tokens(512);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 37 % 101);
  std::vector<double> speeds;
  for (int repeat = 0; repeat < 4; ++repeat) {
    Generator generator(model, {});
    const double start = now_s();
    generator.read(tokens);
    generator.end_piece();
    speeds.push_back(511 / (now_s() - start));
  }
  return *std::max_element(speeds.begin(), speeds.end());
}

void measure(const LanguageModel& model, const std::string& format, int threads, const Tensor& array, double seconds) {
  omp_set_num_threads(threads);
  double touched = 0;
  for (const auto& entry : model.parameters().all())
    if (entry.name != "embedding.weight")
      touched += entry.parameter->is_packed() ? static_cast<double>(entry.parameter->packed().bytes().size())
                                              : static_cast<double>(entry.parameter->shape().count()) * sizeof(Real);
  std::vector<double> fractions, speeds, bandwidths;
  int dropped = 0;
  for (int repeat = 0; repeat < 9; ++repeat) {
    const double before = probe(array, threads), speed = decode(model, seconds), after = probe(array, threads);
    if (std::abs(before - after) > 0.1 * std::max(before, after)) {
      ++dropped;
      continue;
    }
    fractions.push_back(speed * touched / ((before + after) / 2));
    speeds.push_back(speed);
    bandwidths.push_back((before + after) / 2);
  }
  fmt::print("| {} | {} | {:.0f} | {:.1f} | {:.1f} | {:.2f} | {} of 9 | {:.0f} |\n", format, threads, touched / 1e6,
             median(bandwidths) / 1e9, median(speeds), median(fractions), 9 - dropped, read_prompt(model));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, const char* standard) { return std::string(i < argc ? argv[i] : standard); };
  ModelConfig config;
  config.mixer = argument(1, "rwkv4");
  config.layers = std::atol(argument(2, "12").c_str());
  config.dim = std::atol(argument(3, "768").c_str());
  config.vocab = std::atol(argument(4, "50277").c_str());
  const double seconds = std::atof(argument(7, "0.7").c_str());
  const Tensor array = Tensor::full({Index{1} << 27}, Real{1});  // 512 MiB
  fmt::print("| format | threads | MB touched | probe, GB/s | tokens/s | fraction | kept | prompt, tokens/s |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  for (const std::string& name : split(argument(5, "f32,bf16,q8,q4"))) {
    const NumberFormat format = parse_number_format(name);
    LanguageModel model(config, false, [format](const std::string&, const Parameter& parameter) {
      return parameter.traits().matrix ? format : NumberFormat::f32;
    });
    model.parameters().initialise(1);
    for (const std::string& threads : split(argument(6, "1,2")))
      measure(model, name, std::atoi(threads.c_str()), array, seconds);
  }
}
