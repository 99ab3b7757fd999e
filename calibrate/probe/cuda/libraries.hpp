// SPDX-License-Identifier: Apache-2.0
// Libraries that may or may not be on the machine: looked up when the probe runs, so that one binary works with and without
// them. A library that is missing, or lacks a function, says why.
#pragma once

#include <string>

#include <cublasLt.h>
#include <nccl.h>

namespace weft::cuda {

struct Nccl {
  decltype(&::ncclGetVersion) get_version;
  decltype(&::ncclGetUniqueId) get_unique_id;
  decltype(&::ncclCommInitRank) init_rank;
  decltype(&::ncclCommDestroy) destroy;
  decltype(&::ncclCommAbort) abort;
  decltype(&::ncclCommGetAsyncError) async_error;
  decltype(&::ncclGetErrorString) error_string;
  decltype(&::ncclGroupStart) group_start;
  decltype(&::ncclGroupEnd) group_end;
  decltype(&::ncclAllReduce) all_reduce;
  decltype(&::ncclAllGather) all_gather;
  decltype(&::ncclReduceScatter) reduce_scatter;
  decltype(&::ncclBroadcast) broadcast;
  decltype(&::ncclSend) send;
  decltype(&::ncclRecv) recv;
};

struct CublasLt {
  decltype(&::cublasLtCreate) create;
  decltype(&::cublasLtDestroy) destroy;
  decltype(&::cublasLtMatmul) matmul;
  decltype(&::cublasLtMatmulDescCreate) desc_create;
  decltype(&::cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&::cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create;
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic;
};

// The part of the management library that the probe reads, declared here: its header is rarely installed.
struct NvmlPci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char address[32];
};
struct Nvml {
  using Device = void*;
  int (*init)();
  int (*driver_version)(char* text, unsigned length);
  int (*device_by_bus)(const char* bus, Device* device);
  int (*clock)(Device device, int domain, unsigned* mhz);
  int (*pcie_generation)(Device device, unsigned* generation);
  int (*pcie_width)(Device device, unsigned* width);
  int (*power_limit)(Device device, unsigned* milliwatts);
  int (*nvlink_state)(Device device, unsigned link, int* active);
  int (*nvlink_remote)(Device device, unsigned link, NvmlPci* pci);
  int (*common_ancestor)(Device a, Device b, int* level);
};

// nullptr when it cannot be had; why_not then says why. Loaded once.
const Nccl* nccl(std::string* why_not = nullptr);
const CublasLt* cublas_lt(std::string* why_not = nullptr);
const Nvml* nvml(std::string* why_not = nullptr);

}  // namespace weft::cuda
