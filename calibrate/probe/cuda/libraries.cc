// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/cuda/libraries.hpp"

#include <initializer_list>
#include <optional>

#include <dlfcn.h>
#include <fmt/format.h>

namespace weft::cuda {
namespace {

class Loader {
 public:
  explicit Loader(std::initializer_list<std::string> names) {
    for (const std::string& name : names) {
      handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) return;
    }
    why_not_ = fmt::format("{} is not installed", *names.begin());
  }

  template <class F>
  void get(F& function, const char* name) {
    if (handle_ == nullptr) return;
    function = reinterpret_cast<F>(::dlsym(handle_, name));
    if (function == nullptr && why_not_.empty())
      why_not_ = fmt::format("{} is missing in it", name);
  }

  const std::string& why_not() const { return why_not_; }

 private:
  void* handle_ = nullptr;
  std::string why_not_;
};

template <class T>
struct Loaded {
  T functions{};
  std::string why_not;

  const T* get(std::string* why) const {
    if (why != nullptr) *why = why_not;
    return why_not.empty() ? &functions : nullptr;
  }
};

Loaded<Nccl> load_nccl() {
  Loader library{"libnccl.so.2", "libnccl.so"};
  Loaded<Nccl> out;
  Nccl& f = out.functions;
  library.get(f.get_version, "ncclGetVersion");
  library.get(f.get_unique_id, "ncclGetUniqueId");
  library.get(f.init_rank, "ncclCommInitRank");
  library.get(f.destroy, "ncclCommDestroy");
  library.get(f.abort, "ncclCommAbort");
  library.get(f.async_error, "ncclCommGetAsyncError");
  library.get(f.error_string, "ncclGetErrorString");
  library.get(f.group_start, "ncclGroupStart");
  library.get(f.group_end, "ncclGroupEnd");
  library.get(f.all_reduce, "ncclAllReduce");
  library.get(f.all_gather, "ncclAllGather");
  library.get(f.reduce_scatter, "ncclReduceScatter");
  library.get(f.broadcast, "ncclBroadcast");
  library.get(f.send, "ncclSend");
  library.get(f.recv, "ncclRecv");
  out.why_not = library.why_not();
  return out;
}

Loaded<CublasLt> load_cublas() {
  // The layout of its structs belongs to the major version.
  Loader library{fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)};
  Loaded<CublasLt> out;
  CublasLt& f = out.functions;
  library.get(f.create, "cublasLtCreate");
  library.get(f.destroy, "cublasLtDestroy");
  library.get(f.matmul, "cublasLtMatmul");
  library.get(f.desc_create, "cublasLtMatmulDescCreate");
  library.get(f.desc_destroy, "cublasLtMatmulDescDestroy");
  library.get(f.desc_set, "cublasLtMatmulDescSetAttribute");
  library.get(f.layout_create, "cublasLtMatrixLayoutCreate");
  library.get(f.layout_destroy, "cublasLtMatrixLayoutDestroy");
  library.get(f.preference_create, "cublasLtMatmulPreferenceCreate");
  library.get(f.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library.get(f.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  library.get(f.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  out.why_not = library.why_not();
  return out;
}

Loaded<Nvml> load_nvml() {
  Loader library{"libnvidia-ml.so.1"};
  Loaded<Nvml> out;
  Nvml& f = out.functions;
  library.get(f.init, "nvmlInit_v2");
  library.get(f.driver_version, "nvmlSystemGetDriverVersion");
  library.get(f.device_by_bus, "nvmlDeviceGetHandleByPciBusId_v2");
  library.get(f.clock, "nvmlDeviceGetClockInfo");
  library.get(f.pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
  library.get(f.pcie_width, "nvmlDeviceGetCurrPcieLinkWidth");
  library.get(f.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  library.get(f.nvlink_state, "nvmlDeviceGetNvLinkState");
  library.get(f.nvlink_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  library.get(f.common_ancestor, "nvmlDeviceGetTopologyCommonAncestor");
  out.why_not = library.why_not();
  if (out.why_not.empty() && f.init() != 0) out.why_not = "the management library does not start";
  return out;
}

}  // namespace

const Nccl* nccl(std::string* why_not) {
  static const Loaded<Nccl> loaded = load_nccl();
  return loaded.get(why_not);
}

const CublasLt* cublas_lt(std::string* why_not) {
  static const Loaded<CublasLt> loaded = load_cublas();
  return loaded.get(why_not);
}

const Nvml* nvml(std::string* why_not) {
  static const Loaded<Nvml> loaded = load_nvml();
  return loaded.get(why_not);
}

}  // namespace weft::cuda
