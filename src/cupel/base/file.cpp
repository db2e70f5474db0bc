#include "cupel/base/file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

std::string system_message() {
  return std::strerror(errno);
}

void write_all(int descriptor, const std::byte* data, std::size_t size,
               const std::filesystem::path& path) {
  while (size > 0) {
    const ssize_t n = ::write(descriptor, data, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      throw InfrastructureError(path.string(), fmt::format("cannot write: {}", system_message()));
    }
    data += n;
    size -= static_cast<std::size_t>(n);
  }
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw InputError(path.string(), "a readable file", system_message());
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw InputError(path.string(), "a regular file", "something else");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ > 0) {
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED) {
      const std::string message = system_message();
      ::close(descriptor);
      throw InfrastructureError(path.string(), fmt::format("cannot map: {}", message));
    }
    data_ = static_cast<const std::byte*>(mapped);
  }
  ::close(descriptor);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() {
  unmap();
}

void MappedFile::unmap() noexcept {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  data_ = nullptr;
}

std::string read_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  temporary_ = path_;
  temporary_ += fmt::format(".tmp{}", ::getpid());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw InputError(path_.string(), "a writable path", system_message());
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write_all(descriptor_, bytes.data(), bytes.size(), path_);
  size_ += bytes.size();
  // The storage works while the file grows; the sync of a large one finds little left. A hint.
  constexpr std::uint64_t kPiece = 16u << 20;
  if (size_ - sent_ < kPiece) return;
  ::sync_file_range(descriptor_, static_cast<off64_t>(sent_), static_cast<off64_t>(size_ - sent_),
                    SYNC_FILE_RANGE_WRITE);
  sent_ = size_;
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw InfrastructureError(path_.string(), fmt::format("cannot write: {}", system_message()));
  }
  ::close(descriptor_);
  descriptor_ = -1;
}

void write_atomically(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

LineWriter::LineWriter(std::filesystem::path path, bool append) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (append ? 0 : O_TRUNC), 0644);
  if (descriptor_ < 0) throw InputError(path_.string(), "a writable path", system_message());
  // A killed run may have left a last line without its newline: cut it, its item is asked again.
  const off_t size = ::lseek(descriptor_, 0, SEEK_END);
  off_t end = size;
  char byte = 0;
  while (end > 0 && ::pread(descriptor_, &byte, 1, end - 1) == 1 && byte != '\n') --end;
  if (end != size && ::ftruncate(descriptor_, end) != 0) {
    const std::string message = system_message();
    ::close(descriptor_);
    throw InfrastructureError(path_.string(), fmt::format("cannot truncate: {}", message));
  }
  ::lseek(descriptor_, end, SEEK_SET);
}

LineWriter::~LineWriter() {
  ::close(descriptor_);
}

void LineWriter::write_line(std::string_view line) {
  std::string text(line);
  text += '\n';
  write_all(descriptor_, reinterpret_cast<const std::byte*>(text.data()), text.size(), path_);
}

}  // namespace cupel
