#include "cupel/checkpoint/plain_read.h"

#include <algorithm>
#include <chrono>

#include <fcntl.h>
#include <unistd.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> shards_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".safetensors") files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

class Descriptor {
 public:
  explicit Descriptor(const fs::path& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number_ < 0) throw InputError(path.string(), "a readable file", "none");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(number_); }
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

PlainRead plain_read(const std::vector<fs::path>& folders) {
  PlainRead out;
  std::vector<char> buffer(4u << 20);
  for (const fs::path& folder : folders) {
    for (const fs::path& file : shards_of(folder)) {
      const Descriptor descriptor(file);
      ::posix_fadvise(descriptor.number(), 0, 0, POSIX_FADV_DONTNEED);
      const auto start = std::chrono::steady_clock::now();
      ssize_t n = 0;
      while ((n = ::read(descriptor.number(), buffer.data(), buffer.size())) > 0) {
        out.bytes += static_cast<std::uint64_t>(n);
      }
      if (n < 0) throw InfrastructureError(file.string(), "cannot read");
      out.seconds +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      ::posix_fadvise(descriptor.number(), 0, 0, POSIX_FADV_DONTNEED);
    }
  }
  return out;
}

}  // namespace cupel
