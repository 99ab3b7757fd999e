# SPDX-License-Identifier: Apache-2.0
# The parts that need the CUDA toolkit. Host code that only calls the runtime is plain C++20; .cu files stay at C++17 because
# CMake 3.25 knows no C++20 mode for current nvcc.

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100-real 120-virtual)
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit REQUIRED)
