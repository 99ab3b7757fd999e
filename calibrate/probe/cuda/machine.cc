// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probe/cuda/machine.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "calibrate/probe/cuda/libraries.hpp"
#include "calibrate/probe/cuda/runtime.hpp"

namespace weft::cuda {
namespace {

namespace fs = std::filesystem;

constexpr int kSmClock = 1;          // NVML_CLOCK_SM
constexpr unsigned kMostLinks = 18;  // NVLinks of a GPU that NVML numbers

std::string line_of(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<int> number_of(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

// The first CPU of "0-31,64-95".
std::optional<int> first_of_list(const std::string& list) { return number_of(list); }

std::string version_text(int version) {  // 13000 -> 13.0
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

int attribute(cudaDeviceAttr what, int device) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, what, device) == cudaSuccess ? value : 0;
}

class Looker {
 public:
  explicit Looker(bool use_all) : use_all_(use_all) {}

  Server run() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0) {
      cudaGetLastError();
      throw NoMachine(
          fmt::format("no usable GPU here ({}); --backend synthetic needs none",
                      status == cudaSuccess ? "no device" : cudaGetErrorString(status)));
    }
    sockets();
    system();
    for (int device = 0; device < count; ++device) gpu(device);
    for (int a = 0; a < count; ++a) {
      out_.paths.emplace_back(static_cast<std::size_t>(count));
      for (int b = 0; b < count; ++b) {
        if (a != b) path(a, b);
      }
    }
    nics();
    return std::move(out_);
  }

 private:
  // NUMA nodes that have CPUs, by socket.
  void sockets() {
    const fs::path root = "/sys/devices/system/node";
    std::map<int, std::vector<int>> by_socket;
    std::error_code none;
    for (int node = 0; node < 1024; ++node) {
      const fs::path folder = root / fmt::format("node{}", node);
      if (!fs::exists(folder, none)) continue;
      const auto cpu = first_of_list(line_of((folder / "cpulist").string()));
      if (!cpu) continue;  // memory of a GPU or of an expander
      const auto socket = number_of(
          line_of(fmt::format("/sys/devices/system/cpu/cpu{}/topology/physical_package_id", *cpu)));
      by_socket[std::max(0, socket.value_or(0))].push_back(node);
    }
    if (by_socket.empty()) by_socket[0] = {};
    for (auto& [socket, nodes] : by_socket) out_.numa_nodes.push_back(std::move(nodes));
    out_.host.sockets = static_cast<int>(out_.numa_nodes.size());
  }

  void system() {
    MeasuredHost& host = out_.host;
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) == 0) host.host = name.data();
    utsname system{};
    if (::uname(&system) == 0) host.system = fmt::format("{} {}", system.sysname, system.release);
    std::ifstream cpus("/proc/cpuinfo");
    for (std::string line; std::getline(cpus, line);) {
      if (!line.starts_with("model name")) continue;
      host.processor = line.substr(std::min(line.size(), line.find(':') + 2));
      break;
    }
    const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) host.memory = Bytes{std::int64_t{pages} * page};
    int version = 0;
    if (cudaRuntimeGetVersion(&version) == cudaSuccess) host.cuda = version_text(version);
    if (const Nvml* library = nvml()) {
      std::array<char, 96> text{};
      if (library->driver_version(text.data(), text.size()) == 0) host.driver = text.data();
    }
    if (host.driver.empty() && cudaDriverGetVersion(&version) == cudaSuccess)
      host.driver = fmt::format("for CUDA {}", version_text(version));
    if (const Nccl* library = nccl(); library != nullptr) {
      if (library->get_version(&version) == ncclSuccess) {
        host.nccl = fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
      }
    }
  }

  void gpu(int device) {
    MeasuredGpu gpu;
    gpu.device = device;
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) == cudaSuccess) {
      gpu.product = properties.name;
      gpu.memory = Bytes{static_cast<std::int64_t>(properties.totalGlobalMem)};
      std::string uuid = "GPU-";
      for (std::size_t i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) uuid += '-';
        uuid += fmt::format("{:02x}", static_cast<unsigned char>(properties.uuid.bytes[i]));
      }
      gpu.uuid = uuid;
    }
    std::array<char, 64> bus{};
    if (cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device) == cudaSuccess)
      gpu.bus = lower(bus.data());
    gpu.compute_capability =
        fmt::format("{}.{}", attribute(cudaDevAttrComputeCapabilityMajor, device),
                    attribute(cudaDevAttrComputeCapabilityMinor, device));
    gpu.sms = attribute(cudaDevAttrMultiProcessorCount, device);
    gpu.copy_engines = attribute(cudaDevAttrAsyncEngineCount, device);
    if (const int bytes = attribute(cudaDevAttrL2CacheSize, device); bytes > 0)
      gpu.l2_cache = Bytes{bytes};
    if (const int khz = attribute(cudaDevAttrClockRate, device); khz > 0)
      gpu.clock = Frequency{khz * 1e3};
    if (const int khz = attribute(cudaDevAttrMemoryClockRate, device); khz > 0)
      gpu.memory_clock = Frequency{khz * 1e3};
    if (const int bits = attribute(cudaDevAttrGlobalMemoryBusWidth, device); bits > 0)
      gpu.memory_bus = bits;
    const auto numa = number_of(line_of(fmt::format("/sys/bus/pci/devices/{}/numa_node", gpu.bus)));
    gpu.numa = numa.value_or(-1);
    ask_nvml(gpu);
    std::size_t free = properties.totalGlobalMem / 2, all = 0;
    if (use_all_ &&
        (cudaSetDevice(device) != cudaSuccess || cudaMemGetInfo(&free, &all) != cudaSuccess)) {
      cudaGetLastError();
      free = 0;
    }
    out_.free_memory.push_back(free);
    out_.socket_of_gpu.push_back(socket_of(gpu.numa));
    out_.host.gpus.push_back(std::move(gpu));
  }

  int socket_of(int numa) const {
    for (std::size_t socket = 0; socket < out_.numa_nodes.size(); ++socket) {
      const auto& nodes = out_.numa_nodes[socket];
      if (std::ranges::find(nodes, numa) != nodes.end()) return static_cast<int>(socket);
    }
    return out_.numa_nodes.size() == 1 ? 0 : -1;
  }

  void ask_nvml(MeasuredGpu& gpu) {
    const Nvml* library = nvml();
    Nvml::Device handle = nullptr;
    if (library == nullptr || library->device_by_bus(gpu.bus.c_str(), &handle) != 0) {
      handles_.push_back(nullptr);
      links_.emplace_back();
      return;
    }
    handles_.push_back(handle);
    unsigned value = 0;
    if (library->pcie_generation(handle, &value) == 0 && value >= 1 && value <= 8)
      gpu.pcie_generation = static_cast<int>(value);
    if (library->pcie_width(handle, &value) == 0 && value >= 1 && value <= 32)
      gpu.pcie_width = static_cast<int>(value);
    if (library->power_limit(handle, &value) == 0 && value > 0)
      gpu.power_limit = Power{value * 1e-3};
    std::map<std::string, int> ends;  // links by what they lead to
    for (unsigned link = 0; link < kMostLinks; ++link) {
      int active = 0;
      if (library->nvlink_state(handle, link, &active) != 0 || active == 0) continue;
      ++gpu.nvlinks;
      NvmlPci remote{};
      if (library->nvlink_remote(handle, link, &remote) == 0) ++ends[short_bus(remote.address)];
    }
    links_.push_back(std::move(ends));
  }

  // "00000000:07:00.0" and "0000:07:00.0" are one address.
  static std::string short_bus(const char* address) {
    const std::string text = lower(address);
    const std::size_t colon = text.find(':');
    return colon == std::string::npos || colon < 4 ? text : text.substr(colon - 4);
  }

  void path(int a, int b) {
    ProbePath& out = out_.paths[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
    int access = 0;
    out.peer_access = cudaDeviceCanAccessPeer(&access, a, b) == cudaSuccess && access != 0;
    out.kind = kind_of(static_cast<std::size_t>(a), static_cast<std::size_t>(b));
    if (a < b) out_.host.paths[fmt::format("gpu{}-gpu{}", a, b)] = out.kind;
  }

  std::string kind_of(std::size_t a, std::size_t b) const {
    const MeasuredGpu &x = out_.host.gpus[a], &y = out_.host.gpus[b];
    if (const auto direct = links_[a].find(y.bus); direct != links_[a].end())
      return fmt::format("NV{}", direct->second);
    // Links that lead to something both have: a switch.
    int shared = 0;
    for (const auto& [end, count] : links_[a]) shared += links_[b].contains(end) ? count : 0;
    if (shared > 0) return fmt::format("NV{}", shared);
    // Some drivers do not tell what is at the other end of links to a switch.
    if (links_[a].empty() && x.nvlinks > 0 && x.nvlinks == y.nvlinks &&
        out_.paths[a][b].peer_access)
      return fmt::format("NV{}", x.nvlinks);
    if (const Nvml* library = nvml();
        library != nullptr && handles_[a] != nullptr && handles_[b] != nullptr) {
      int level = 0;
      if (library->common_ancestor(handles_[a], handles_[b], &level) == 0) {
        if (level <= 10) return "PIX";
        if (level <= 20) return "PXB";
        if (level <= 30) return "PHB";
        return level <= 40 ? "NODE" : "SYS";
      }
    }
    return by_system(x.bus, y.bus, x.numa, y.numa);
  }

  // From the tree that the kernel shows.
  static std::string by_system(const std::string& a, const std::string& b, int numa_a, int numa_b) {
    std::error_code none;
    const fs::path x = fs::canonical("/sys/bus/pci/devices/" + a, none);
    const fs::path y = fs::canonical("/sys/bus/pci/devices/" + b, none);
    if (x.empty() || y.empty()) return "SYS";
    std::ptrdiff_t shared = 0;
    auto i = x.begin(), j = y.begin();
    for (; i != x.end() && j != y.end() && *i == *j; ++i, ++j) ++shared;
    // "/", "sys", "devices", "pci0000:3a", then a bridge per part.
    const std::ptrdiff_t bridges = shared - 4;
    const std::ptrdiff_t depth = std::distance(x.begin(), x.end());
    if (bridges >= 1) return depth - shared <= 2 ? "PIX" : "PXB";
    if (bridges == 0) return "PHB";
    return numa_a == numa_b && numa_a >= 0 ? "NODE" : "SYS";
  }

  void nics() {
    std::error_code none;
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator("/sys/class/infiniband", none))
      names.insert(entry.path().filename().string());
    for (const std::string& name : names) {
      const fs::path folder = fs::path("/sys/class/infiniband") / name;
      MeasuredNic nic;
      nic.name = name;
      nic.bus = fs::canonical(folder / "device", none).filename().string();
      nic.numa = number_of(line_of((folder / "device/numa_node").string())).value_or(-1);
      // "400 Gb/sec (4X NDR)"
      if (const auto rate = number_of(line_of((folder / "ports/1/rate").string()));
          rate && *rate > 0)
        nic.rate = Bandwidth{std::int64_t{*rate} * 1'000'000'000};
      out_.host.nics.push_back(std::move(nic));
    }
  }

  bool use_all_;
  Server out_;
  std::vector<Nvml::Device> handles_;
  std::vector<std::map<std::string, int>> links_;
};

}  // namespace

Server look_at_server(bool use_all) { return Looker(use_all).run(); }

std::optional<Frequency> sm_clock(const std::string& bus) {
  const Nvml* library = nvml();
  Nvml::Device handle = nullptr;
  unsigned mhz = 0;
  if (library == nullptr || library->device_by_bus(bus.c_str(), &handle) != 0 ||
      library->clock(handle, kSmClock, &mhz) != 0 || mhz == 0)
    return std::nullopt;
  return Frequency{mhz * 1e6};
}

}  // namespace weft::cuda
