// Files: read-only memory maps, whole-file reads, and writers that never leave a half-written file
// under its final name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace cupel {

// A read-only memory map of a whole file. Move-only; unmaps on destruction.
class MappedFile {
 public:
  MappedFile() = default;
  // Throws InputError if the path is no readable regular file.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  void unmap() noexcept;

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The whole file. Throws InputError if it cannot be read.
std::string read_file(const std::filesystem::path& path);

// A file that appears under its final name only when commit() succeeded: written beside it under a
// temporary name, synced, renamed. Without commit() the temporary file is removed.
class AtomicFile {
 public:
  // Throws InputError if the folder does not exist or is not writable.
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Throws InfrastructureError, for example on a full disk.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t sent_ = 0;  // on their way to the storage
};

// A whole file that way. Throws as AtomicFile does.
void write_atomically(const std::filesystem::path& path, std::string_view text);

// A text file that grows line by line and survives a kill: each line goes out in one write.
class LineWriter {
 public:
  // Creates or truncates (append = false) the file; appending first cuts an unfinished last line.
  // Throws InputError if it cannot be opened.
  LineWriter(std::filesystem::path path, bool append);
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;
  ~LineWriter();

  // Writes `line` and a newline. Throws InfrastructureError, for example on a full disk.
  void write_line(std::string_view line);
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace cupel
