// SPDX-License-Identifier: Apache-2.0
// Kernels of one GPU: streams through its memory, launches, matrix products by cuBLASLt.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/probe/backend.hpp"
#include "calibrate/probe/cuda/libraries.hpp"
#include "calibrate/probe/cuda/machine.hpp"
#include "calibrate/probe/cuda/runtime.hpp"

namespace weft::cuda {

// One matrix product, ready to be queued. Row-major C = A B; FP8 wants the transposed form, which is what it gets.
class Product {
 public:
  Product(int device, const std::string& type, std::int64_t m, std::int64_t n, std::int64_t k);
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  void queue(const Stream& stream);
  static double flops(std::int64_t m, std::int64_t n, std::int64_t k) {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Types that a GPU of this compute capability multiplies, the most used first; empty, with the reason, without cuBLASLt.
std::vector<std::string> product_types(const std::string& compute_capability, std::string* why_not);

std::unique_ptr<PreparedTest> prepare_kernel(const GpuKernelTest& test, const Server& server);

}  // namespace weft::cuda
