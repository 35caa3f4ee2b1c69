// A convolution by oneDNN, as often as it is asked for.
//
//   onednn THREADS LAYOUT IMAGES EXTENT CHANNELS FILTERS WINDOW STRIDE OUTPUT BEFORE BEHIND
//
// The layout is `nhwc`, or `any`: that which oneDNN likes best. Weights are brought into order ahead. For each
// line on the standard input, a number of times, it answers with the nanoseconds that took. The first line
// that it writes is the name of the implementation.

#include <omp.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <dnnl.hpp>

using namespace dnnl;
using Tag = memory::format_tag;

static void fill(memory& of) {
  float* at = static_cast<float*>(of.get_data_handle());
  uint32_t state = 1;
  for (size_t index = 0; index < of.get_desc().get_size() / sizeof(float); ++index) {
    state = state * 1664525 + 1013904223;
    at[index] = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
  }
}

int main(int n_arguments, char** arguments) {
  if (n_arguments != 12) return 2;
  auto number = [&](int index) { return std::atol(arguments[index]); };
  omp_set_num_threads(static_cast<int>(number(1)));
  bool any = std::string(arguments[2]) == "any";
  memory::dim n = number(3), extent = number(4), channels = number(5), filters = number(6),
              window = number(7), stride = number(8), output = number(9), before = number(10),
              behind = number(11);
  engine cpu(engine::kind::cpu, 0);
  stream order(cpu);
  auto f32 = memory::data_type::f32;
  auto image = any ? Tag::any : Tag::nhwc;
  memory::desc x_md({n, channels, extent, extent}, f32, image);
  memory::desc w_md({filters, channels, window, window}, f32, Tag::any);
  memory::desc b_md({filters}, f32, Tag::a);
  memory::desc y_md({n, filters, output, output}, f32, image);
  convolution_forward::primitive_desc description(
      cpu, prop_kind::forward_inference, algorithm::convolution_direct, x_md, w_md, b_md, y_md,
      {stride, stride}, {before, before}, {behind, behind});
  memory x(description.src_desc(), cpu), w(description.weights_desc(), cpu),
      b(description.bias_desc(), cpu), y(description.dst_desc(), cpu);
  fill(x);
  fill(w);
  fill(b);
  convolution_forward convolution(description);
  std::cout << description.impl_info_str() << std::endl;
  for (uint32_t n_times; std::cin >> n_times;) {
    auto start = std::chrono::steady_clock::now();
    for (uint32_t time = 0; time < n_times; ++time) {
      convolution.execute(order, {{DNNL_ARG_SRC, x},
                                  {DNNL_ARG_WEIGHTS, w},
                                  {DNNL_ARG_BIAS, b},
                                  {DNNL_ARG_DST, y}});
    }
    order.wait();
    auto end = std::chrono::steady_clock::now();
    std::cout << std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count()
              << std::endl;
  }
}
