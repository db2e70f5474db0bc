// Arrays in the memory of a device.
//
// The code above the kernels allocates them, hands their addresses to operations and copies from
// and to them; it never reads through such an address, which the host may not be able to reach.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cupel {

struct Device {
  std::string_view type = "cpu";
  int index = 0;

  bool operator==(const Device&) const = default;
};

// Who gives memory of a device. Copies take their turn among the operations of the device.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  virtual Device device() const = 0;
  // Aligned to 64 bytes; what it holds is undefined. Throws std::bad_alloc.
  virtual void* allocate(std::size_t bytes) = 0;
  // Operations called before may still use it.
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;

  // The host's side is used before the call returns.
  virtual void to_device(void* to, const void* from, std::size_t bytes) = 0;
  virtual void to_host(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;  // device to device
};

// Owns its elements. The memory it is from must outlive it.
template <typename T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceArray() = default;
  DeviceArray(DeviceMemory& memory, std::size_t size) : memory_(&memory), size_(size) {
    if (size > 0) data_ = static_cast<T*>(memory.allocate(size * sizeof(T)));
  }
  DeviceArray(DeviceMemory& memory, std::span<const T> values)
      : DeviceArray(memory, values.size()) {
    if (size_ > 0) memory.to_device(data_, values.data(), bytes());
  }
  DeviceArray(DeviceArray&& other) noexcept
      : memory_(other.memory_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() {
    if (data_ != nullptr) memory_->release(data_, bytes());
  }

  // Addresses of the device.
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  bool empty() const { return size_ == 0; }
  // Of an array that was given memory.
  Device device() const { return memory_->device(); }

  DeviceArray clone() const {
    if (data_ == nullptr) return {};
    DeviceArray other(*memory_, size_);
    memory_->copy(other.data_, data_, bytes());
    return other;
  }
  std::vector<T> to_host() const {
    std::vector<T> values(size_);
    if (size_ > 0) memory_->to_host(values.data(), data_, bytes());
    return values;
  }

 private:
  DeviceMemory* memory_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cupel
