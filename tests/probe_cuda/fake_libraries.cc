// SPDX-License-Identifier: Apache-2.0
// NCCL, cuBLASLt and NVML as far as the backend calls them, on the fake runtime.
#ifdef WEFT_FAKE_CUDA
#include <cstdlib>
#include <cstring>
#include <map>

#include "calibrate/probe/cuda/libraries.hpp"
#include "tests/probe_cuda/fake_cuda.hpp"

struct ncclComm {
  int ranks, rank, device;
};

namespace weft::cuda {
namespace {

int depth = 0, sends = 0, receives = 0;

ncclResult_t operation(ncclComm_t comm, std::size_t count, cudaStream_t stream) {
  if (depth == 0) fake::complain("a collective outside of a group");
  if (comm == nullptr || count == 0) fake::complain("a collective of nothing");
  ++fake::world().operations;
  fake::spend(stream, 10e-6 + 4.0 * static_cast<double>(count) / 100e9);
  return ncclSuccess;
}

Nccl make_nccl() {
  Nccl f{};
  f.get_version = [](int* version) {
    *version = 22809;
    return ncclSuccess;
  };
  f.get_unique_id = [](ncclUniqueId* id) {
    static int ids = 0;
    std::memset(id->internal, 0x5A, sizeof id->internal);
    std::memcpy(id->internal + 1, &++ids, sizeof ids);
    return ncclSuccess;
  };
  f.init_rank = [](ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
    if (id.internal[0] != 0x5A || id.internal[127] != 0x5A) fake::complain("a damaged id");
    if (rank < 0 || rank >= ranks) fake::complain("a rank that there is not");
    *comm = new ncclComm{ranks, rank, fake::current_device()};
    const char* algorithm = std::getenv("NCCL_ALGO");
    fake::world().algorithm = algorithm == nullptr ? "" : algorithm;
    ++fake::world().live;
    return ncclSuccess;
  };
  f.destroy = f.abort = [](ncclComm_t comm) {
    delete comm;
    --fake::world().live;
    return ncclSuccess;
  };
  f.async_error = [](ncclComm_t, ncclResult_t* status) {
    *status = ncclSuccess;
    return ncclSuccess;
  };
  f.error_string = [](ncclResult_t) { return "an error"; };
  f.group_start = [] {
    ++depth;
    return ncclSuccess;
  };
  f.group_end = [] {
    if (--depth < 0) fake::complain("a group ends that did not start");
    if (sends != receives) fake::complain("sends without receives");
    sends = receives = 0;
    return ncclSuccess;
  };
  f.all_reduce = [](const void*, void*, std::size_t count, ncclDataType_t, ncclRedOp_t,
                    ncclComm_t comm,
                    cudaStream_t stream) { return operation(comm, count, stream); };
  f.all_gather = [](const void*, void*, std::size_t count, ncclDataType_t, ncclComm_t comm,
                    cudaStream_t stream) {
    return operation(comm, count * static_cast<std::size_t>(comm->ranks), stream);
  };
  f.reduce_scatter = [](const void*, void*, std::size_t count, ncclDataType_t, ncclRedOp_t,
                        ncclComm_t comm, cudaStream_t stream) {
    return operation(comm, count * static_cast<std::size_t>(comm->ranks), stream);
  };
  f.broadcast = [](const void*, void*, std::size_t count, ncclDataType_t, int, ncclComm_t comm,
                   cudaStream_t stream) { return operation(comm, count, stream); };
  f.send = [](const void*, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
              cudaStream_t stream) {
    if (peer < 0 || peer >= comm->ranks) fake::complain("a peer that there is not");
    ++sends;
    return operation(comm, count, stream);
  };
  f.recv = [](void*, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
              cudaStream_t stream) {
    if (peer < 0 || peer >= comm->ranks) fake::complain("a peer that there is not");
    ++receives;
    return operation(comm, count, stream);
  };
  return f;
}

template <class T>
cublasStatus_t make(T* out) {
  *out = reinterpret_cast<T>(new int{0});
  ++fake::world().live;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t drop(T thing) {
  delete reinterpret_cast<const int*>(thing);
  --fake::world().live;
  return CUBLAS_STATUS_SUCCESS;
}

CublasLt make_cublas() {
  CublasLt f{};
  f.create = [](cublasLtHandle_t* out) { return make(out); };
  f.destroy = [](cublasLtHandle_t handle) { return drop(handle); };
  f.desc_create = [](cublasLtMatmulDesc_t* out, cublasComputeType_t, cudaDataType_t) {
    return make(out);
  };
  f.desc_destroy = [](cublasLtMatmulDesc_t desc) { return drop(desc); };
  f.desc_set = [](cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*, std::size_t) {
    return CUBLAS_STATUS_SUCCESS;
  };
  f.layout_create = [](cublasLtMatrixLayout_t* out, cudaDataType, std::uint64_t rows, std::uint64_t,
                       std::int64_t leading) {
    if (leading < static_cast<std::int64_t>(rows)) fake::complain("a matrix with short columns");
    return make(out);
  };
  f.layout_destroy = [](cublasLtMatrixLayout_t layout) { return drop(layout); };
  f.preference_create = [](cublasLtMatmulPreference_t* out) { return make(out); };
  f.preference_destroy = [](cublasLtMatmulPreference_t preference) { return drop(preference); };
  f.preference_set = [](cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                        const void*, std::size_t) { return CUBLAS_STATUS_SUCCESS; };
  f.heuristic = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                   cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                   cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t[], int* found) {
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
  };
  f.matmul = [](cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*,
                cublasLtMatrixLayout_t, const void*, cublasLtMatrixLayout_t, const void*,
                const void*, cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t,
                const cublasLtMatmulAlgo_t*, void*, std::size_t, cudaStream_t stream) {
    fake::spend(stream, 1e-4);
    return CUBLAS_STATUS_SUCCESS;
  };
  return f;
}

Nvml make_nvml() {
  Nvml f{};
  f.driver_version = [](char* text, unsigned) {
    std::strcpy(text, "580.1");
    return 0;
  };
  f.device_by_bus = [](const char* bus, Nvml::Device* device) {
    *device = const_cast<char*>(std::strstr(bus, "0a") != nullptr ? "a" : "b");
    return 0;
  };
  f.clock = [](Nvml::Device, int, unsigned* mhz) {
    *mhz = 1500;
    return 0;
  };
  f.pcie_generation = [](Nvml::Device, unsigned* generation) {
    *generation = 5;
    return 0;
  };
  f.pcie_width = [](Nvml::Device, unsigned* width) {
    *width = 16;
    return 0;
  };
  f.power_limit = [](Nvml::Device, unsigned* milliwatts) {
    *milliwatts = 700'000;
    return 0;
  };
  f.nvlink_state = [](Nvml::Device, unsigned link, int* active) {
    *active = link < 4 ? 1 : 0;
    return 0;
  };
  f.nvlink_remote = [](Nvml::Device device, unsigned, NvmlPci* pci) {
    const bool a = *static_cast<const char*>(device) == 'a';
    std::strcpy(pci->address, a ? "00000000:0B:00.0" : "00000000:0A:00.0");
    return 0;
  };
  f.common_ancestor = [](Nvml::Device, Nvml::Device, int* level) {
    *level = 30;
    return 0;
  };
  return f;
}

}  // namespace

const Nccl* nccl(std::string* why_not) {
  static const Nccl table = make_nccl();
  if (why_not != nullptr) why_not->clear();
  return &table;
}
const CublasLt* cublas_lt(std::string* why_not) {
  static const CublasLt table = make_cublas();
  if (why_not != nullptr) why_not->clear();
  return &table;
}
const Nvml* nvml(std::string* why_not) {
  static const Nvml table = make_nvml();
  if (why_not != nullptr) why_not->clear();
  return &table;
}

}  // namespace weft::cuda
#endif
