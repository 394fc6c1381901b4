// Runs a target over files: `TARGET FOLDER…`. For the tests, which need neither clang nor libFuzzer.
// `TARGET --cases N --seed S FOLDER…` runs N cases that are changed copies of the files instead: without
// coverage, but with the code as it is shipped, and several times as fast. A crash leaves the seed of its
// block on the terminal.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz_input.h"

namespace {

using Bytes = std::vector<uint8_t>;

// Cases that one seed makes.
constexpr int64_t kCasesOfBlock = 100'000;
constexpr size_t kMostBytes = 1024;

class Changes {
 public:
  Changes(const std::vector<Bytes>& files, uint64_t seed) : files_(files), random_(seed) {}

  Bytes next() {
    Bytes bytes = any_file();
    for (uint64_t left = 1 + below(5); left > 0; --left) change(bytes);
    bytes.resize(std::min(bytes.size(), kMostBytes));
    return bytes;
  }

 private:
  uint64_t below(uint64_t bound) { return random_() % bound; }
  uint8_t byte() { return static_cast<uint8_t>(random_()); }
  const Bytes& any_file() { return files_[below(files_.size())]; }

  void change(Bytes& bytes) {
    const auto at = static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
    const auto count = static_cast<std::ptrdiff_t>(1 + below(16));
    const auto place = bytes.begin() + at;
    const auto behind = place + std::min(count, bytes.end() - place);
    switch (below(5)) {
      case 0:
        std::generate(place, behind, [this] { return byte(); });
        return;
      case 1:
        if (place != bytes.end()) *place ^= static_cast<uint8_t>(1 << below(8));
        return;
      case 2:
        bytes.erase(place, behind);
        return;
      case 3: {
        Bytes added(static_cast<size_t>(count));
        std::generate(added.begin(), added.end(), [this] { return byte(); });
        bytes.insert(place, added.begin(), added.end());
        return;
      }
      default: {
        // The rest of another file.
        const Bytes& other = any_file();
        const auto from = other.begin() + static_cast<std::ptrdiff_t>(below(other.size() + 1));
        bytes.erase(place, bytes.end());
        bytes.insert(bytes.end(), from, other.end());
      }
    }
  }

  const std::vector<Bytes>& files_;
  std::mt19937_64 random_;
};

// Of the exact size, so that a sanitizer detects reads beyond it.
void run(const Bytes& bytes) {
  const Bytes exact(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
  int64_t cases = 0;
  uint64_t seed = 1;
  std::vector<Bytes> files;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--cases") == 0 && i + 1 < argc) {
      cases = std::stoll(argv[++i]);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::stoull(argv[++i]);
    } else {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        files.emplace_back(bytes.begin(), bytes.end());
        if (cases > 0) continue;
        std::fprintf(stderr, "%s\n", entry.path().c_str());
        run(files.back());
      }
    }
  }
  for (int64_t done = 0; done < cases && !files.empty(); ++seed) {
    std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(seed));
    Changes changes(files, seed);
    for (const int64_t end = std::min(cases, done + kCasesOfBlock); done < end; ++done) run(changes.next());
  }
  std::printf("%zu files, %lld cases\n", files.size(), static_cast<long long>(cases));
  return files.empty() ? 1 : 0;
}
