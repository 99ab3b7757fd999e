// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/cuda/compute.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "calibrate/probe/cuda/copies.hpp"
#include "calibrate/probe/cuda/kernels.hpp"

namespace weft::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20;
constexpr int kBlocksPerSm = 4;
constexpr double kSlowestRate = 20e12;  // of a product, to choose how often it is repeated

struct TypeFacts {
  cudaDataType_t operand, result;
  cublasComputeType_t compute;
  Element element;
  std::size_t bytes, result_bytes;
  bool transposed;
};

std::optional<TypeFacts> facts_of(const std::string& type) {
  if (type == "bf16") {
    return TypeFacts{CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, Element::bf16, 2, 2, false};
  }
  if (type == "fp16") {
    return TypeFacts{CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, Element::fp16, 2, 2, false};
  }
  if (type == "fp8") {
    return TypeFacts{CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, Element::fp8, 1, 2, true};
  }
  if (type == "tf32") {
    return TypeFacts{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, Element::fp32, 4,
                     4,          false};
  }
  if (type == "fp32") {
    return TypeFacts{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, Element::fp32, 4, 4, false};
  }
  if (type == "fp64") {
    return TypeFacts{CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, Element::fp64, 8, 8, false};
  }
  return std::nullopt;
}

void check_blas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED)
    throw TestFailed(fmt::format("{}: cuBLASLt has no kernel for it here", what));
  throw TestFailed(fmt::format("{}: cuBLASLt says {}", what, static_cast<int>(status)));
}

}  // namespace

struct Product::Parts {
  const CublasLt* library = nullptr;
  TypeFacts facts{};
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a_layout = nullptr, b_layout = nullptr, c_layout = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t choice{};
  DeviceMemory a, b, c, workspace, scale;
  int device = 0;

  ~Parts() {
    if (library == nullptr || device_is_broken()) return;
    if (preference != nullptr) library->preference_destroy(preference);
    for (cublasLtMatrixLayout_t layout : {a_layout, b_layout, c_layout}) {
      if (layout != nullptr) library->layout_destroy(layout);
    }
    if (operation != nullptr) library->desc_destroy(operation);
    if (handle != nullptr) library->destroy(handle);
  }
};

Product::Product(int device, const std::string& type, std::int64_t m, std::int64_t n,
                 std::int64_t k)
    : parts_(std::make_unique<Parts>()) {
  Parts& p = *parts_;
  std::string why;
  p.library = cublas_lt(&why);
  if (p.library == nullptr) throw TestFailed(why);
  const auto facts = facts_of(type);
  if (!facts) throw TestFailed(fmt::format("no products of {}", type));
  p.facts = *facts;
  p.device = device;
  use(device);
  const auto count = [](std::int64_t x, std::int64_t y) {
    return static_cast<std::size_t>(x) * static_cast<std::size_t>(y);
  };
  p.a = DeviceMemory(device, count(m, k) * facts->bytes);
  p.b = DeviceMemory(device, count(k, n) * facts->bytes);
  p.c = DeviceMemory(device, count(m, n) * facts->result_bytes);
  p.workspace = DeviceMemory(device, kWorkspace);
  check(queue_fill(p.a.as(), count(m, k) * facts->bytes, facts->element, nullptr), "filling");
  check(queue_fill(p.b.as(), count(k, n) * facts->bytes, facts->element, nullptr), "filling");
  check(cudaDeviceSynchronize(), "filling");

  const CublasLt& lt = *p.library;
  check_blas(lt.create(&p.handle), "a handle");
  const cudaDataType_t scale_type = facts->compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F;
  check_blas(lt.desc_create(&p.operation, facts->compute, scale_type), "a product");
  // The library counts columns first: its m x n result is our n x m one, from B and A in this order.
  const cublasOperation_t straight = CUBLAS_OP_N, turned = CUBLAS_OP_T;
  const auto set = [&](cublasLtMatmulDescAttributes_t what, const void* value, std::size_t size) {
    check_blas(lt.desc_set(p.operation, what, value, size), "a product");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, facts->transposed ? &turned : &straight, sizeof turned);
  set(CUBLASLT_MATMUL_DESC_TRANSB, &straight, sizeof straight);
  if (facts->transposed) {  // FP8 has a scale per operand
    p.scale = DeviceMemory(device, sizeof(float));
    const float one = 1;
    check(cudaMemcpy(p.scale.as(), &one, sizeof one, cudaMemcpyDefault), "a scale");
    void* scale = p.scale.as();
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, sizeof scale);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scale, sizeof scale);
  }
  const auto rows = static_cast<std::uint64_t>(m), columns = static_cast<std::uint64_t>(n),
             depth = static_cast<std::uint64_t>(k);
  check_blas(facts->transposed ? lt.layout_create(&p.b_layout, facts->operand, depth, columns, k)
                               : lt.layout_create(&p.b_layout, facts->operand, columns, depth, n),
             "an operand");
  check_blas(lt.layout_create(&p.a_layout, facts->operand, depth, rows, k), "an operand");
  check_blas(lt.layout_create(&p.c_layout, facts->result, columns, rows, n), "a result");
  check_blas(lt.preference_create(&p.preference), "a choice");
  const std::size_t workspace = kWorkspace;
  check_blas(lt.preference_set(p.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                               sizeof workspace),
             "a choice");
  int found = 0;
  check_blas(lt.heuristic(p.handle, p.operation, p.b_layout, p.a_layout, p.c_layout, p.c_layout,
                          p.preference, 1, &p.choice, &found),
             "a product");
  if (found == 0) throw TestFailed("cuBLASLt has no kernel for it here");
}

Product::~Product() = default;

void Product::queue(const Stream& stream) {
  Parts& p = *parts_;
  use(p.device);
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const bool wide = p.facts.compute == CUBLAS_COMPUTE_64F;
  check_blas(p.library->matmul(
                 p.handle, p.operation, wide ? static_cast<const void*>(&wide_one) : &one, p.b.as(),
                 p.b_layout, p.a.as(), p.a_layout,
                 wide ? static_cast<const void*>(&wide_zero) : &zero, p.c.as(), p.c_layout,
                 p.c.as(), p.c_layout, &p.choice.algo, p.workspace.as(), kWorkspace, stream.get()),
             "a product");
}

std::vector<std::string> product_types(const std::string& compute_capability,
                                       std::string* why_not) {
  if (cublas_lt(why_not) == nullptr) return {};
  int major = 0, minor = 0;
  const char* end = compute_capability.data() + compute_capability.size();
  const auto first = std::from_chars(compute_capability.data(), end, major);
  if (first.ptr != end) std::from_chars(first.ptr + 1, end, minor);
  std::vector<std::string> out;
  if (major >= 8) out = {"bf16", "fp16"};
  if (major == 7) out = {"fp16"};
  if (major >= 9 || (major == 8 && minor == 9)) out.emplace_back("fp8");
  if (major >= 8) out.emplace_back("tf32");
  out.emplace_back("fp32");
  return out;
}

namespace {

// Something queued on one stream, a number of times between two events.
class QueuedKernel : public PreparedTest {
 public:
  QueuedKernel(int device, const Server& server, double estimate)
      : stream_(device),
        start_(device),
        end_(device),
        server_(server),
        inner_(inner_repeats(estimate)) {}

  std::vector<Time> once() override {
    gate_.hold(stream_);
    start_.record(stream_);
    for (int i = 0; i < inner_; ++i) queue(stream_);
    end_.record(stream_);
    gate_.open();
    wait_for({&stream_});
    return {Time{between(start_, end_).ps / inner_}};
  }

  std::optional<Frequency> clock() override {
    return sm_clock(server_.host.gpus.at(static_cast<std::size_t>(stream_.device())).bus);
  }

 protected:
  virtual void queue(const Stream& stream) = 0;

 private:
  Stream stream_;
  Event start_, end_;
  const Server& server_;
  Gate gate_;
  int inner_;
};

class MatrixKernel final : public QueuedKernel {
 public:
  MatrixKernel(const GpuKernelTest& test, int device, const Server& server)
      : QueuedKernel(device, server, Product::flops(test.m, test.n, test.k) / kSlowestRate),
        product_(device, test.type, test.m, test.n, test.k) {}

 private:
  void queue(const Stream& stream) override { product_.queue(stream); }

  Product product_;
};

// `bytes` counts what is read and what is written.
class StreamKernel final : public QueuedKernel {
 public:
  StreamKernel(const GpuKernelTest& test, int device, const Server& server)
      : QueuedKernel(device, server, test.bytes.value() / 5e12 + 2e-6),
        triad_(test.test == KernelTest::triad),
        array_(static_cast<std::size_t>(test.bytes.count) / (triad_ ? 3 : 2) / 16 * 16),
        blocks_(server.host.gpus.at(static_cast<std::size_t>(device)).sms * kBlocksPerSm),
        a_(device, array_),
        b_(device, array_),
        c_(device, triad_ ? array_ : 16) {
    check(cudaMemset(b_.as(), 0, array_), "clearing an array");
    if (triad_) check(cudaMemset(c_.as(), 0, array_), "clearing an array");
    check(cudaDeviceSynchronize(), "clearing an array");
  }

 private:
  void queue(const Stream& stream) override {
    use(stream.device());
    check(triad_ ? queue_triad(a_.as<float>(), b_.as<float>(), c_.as<float>(), array_, blocks_,
                               stream.get())
                 : queue_copy(a_.as(), b_.as(), array_, blocks_, stream.get()),
          "starting a kernel");
  }

  bool triad_;
  std::size_t array_;
  int blocks_;
  DeviceMemory a_, b_, c_;
};

// The host's time per empty kernel, until the last has run.
class Launches final : public PreparedTest {
 public:
  Launches(const GpuKernelTest& test, int device)
      : stream_(device), kernels_(static_cast<int>(test.kernels)) {
    if (test.test == KernelTest::graph_launch) build_graph();
  }
  ~Launches() override {
    if (runnable_ != nullptr) cudaGraphExecDestroy(runnable_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

  std::vector<Time> once() override {
    use(stream_.device());
    const double start = seconds_now();
    if (runnable_ != nullptr) {
      check(cudaGraphLaunch(runnable_, stream_.get()), "launching a graph");
    } else {
      for (int i = 0; i < kernels_; ++i) check(queue_empty(stream_.get()), "starting a kernel");
    }
    check(cudaStreamSynchronize(stream_.get()), "running it");
    return {time_of((seconds_now() - start) / kernels_)};
  }

 private:
  void build_graph() {
    use(stream_.device());
    check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), "a graph");
    for (int i = 0; i < kernels_; ++i) check(queue_empty(stream_.get()), "a graph");
    check(cudaStreamEndCapture(stream_.get(), &graph_), "a graph");
    check(cudaGraphInstantiate(&runnable_, graph_, 0), "a graph");
  }

  Stream stream_;
  int kernels_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t runnable_ = nullptr;
};

}  // namespace

std::unique_ptr<PreparedTest> prepare_kernel(const GpuKernelTest& test, const Server& server) {
  const int device = place_of(test.gpu).device;
  if (device < 0) throw TestFailed(fmt::format("{} is no GPU", test.gpu));
  switch (test.test) {
    case KernelTest::matmul:
      return std::make_unique<MatrixKernel>(test, device, server);
    case KernelTest::copy:
    case KernelTest::triad:
      return std::make_unique<StreamKernel>(test, device, server);
    case KernelTest::launch:
    case KernelTest::graph_launch:
      return std::make_unique<Launches>(test, device);
  }
  return nullptr;
}

}  // namespace weft::cuda
