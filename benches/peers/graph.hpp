// What the programs beside this file share: the graph, its values, and the conversation with the
// benchmark that started them.

#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <vector>

struct Graph {
  std::vector<std::vector<uint32_t>> before;
  std::vector<std::vector<uint32_t>> after;
  std::vector<int32_t> values;
  int32_t start = 0;
  int32_t step = 0;
  bool slow = false;
  uint64_t n_turns = 0;
  int n_threads = 1;

  size_t size() const { return before.size(); }

  // Computes the value of a node.
  void run(uint32_t node) {
    const std::vector<uint32_t>& list = before[node];
    if (slow && list.size() <= 4) turn(n_turns);
    uint32_t sum = 0;
    for (uint32_t one : list) sum += static_cast<uint32_t>(values[one]);
    if (list.empty()) sum += static_cast<uint32_t>(start);
    if (list.size() < 2) sum += static_cast<uint32_t>(step);
    values[node] = static_cast<int32_t>(sum);
  }

  // A chain of multiplications that the compiler can't shorten.
  static void turn(uint64_t n_turns) {
    uint64_t word = 1;
    for (uint64_t index = 0; index < n_turns; ++index) {
      asm volatile("" : "+r"(word));
      word *= 0x9e3779b97f4a7c15u;
    }
    asm volatile("" : : "r"(word));
  }
};

inline int64_t now(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

// Reads the arguments: file, threads, "slow" or "add", start, step.
inline Graph read(int n_arguments, char** arguments) {
  if (n_arguments != 6) {
    std::fprintf(stderr, "Usage: %s FILE THREADS slow|add START STEP\n", arguments[0]);
    std::exit(2);
  }
  Graph graph;
  std::ifstream file(arguments[1]);
  size_t n_nodes = 0;
  file >> n_nodes;
  graph.before.resize(n_nodes);
  graph.after.resize(n_nodes);
  graph.values.resize(n_nodes);
  for (uint32_t node = 0; node < n_nodes; ++node) {
    size_t n_before = 0;
    file >> n_before;
    graph.before[node].resize(n_before);
    for (uint32_t& before : graph.before[node]) {
      file >> before;
      graph.after[before].push_back(node);
    }
  }
  graph.n_threads = std::atoi(arguments[2]);
  graph.slow = std::strcmp(arguments[3], "slow") == 0;
  graph.start = std::atoi(arguments[4]);
  graph.step = std::atoi(arguments[5]);
  if (graph.slow) {
    const uint64_t n_turns = 100000;
    int64_t fastest = INT64_MAX;
    for (int index = 0; index < 20; ++index) {
      const int64_t begin = now(CLOCK_MONOTONIC);
      Graph::turn(n_turns);
      fastest = std::min(fastest, now(CLOCK_MONOTONIC) - begin);
    }
    graph.n_turns = n_turns * 1000 / static_cast<uint64_t>(std::max<int64_t>(fastest, 1)) + 1;
  }
  return graph;
}

// Runs the graph as often as each line of standard input says. One thread is timed by the process's
// processor time, more by the time that passes.
template <typename Run>
void serve(Graph& graph, Run run) {
  const clockid_t clock = graph.n_threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
  uint64_t n_times = 0;
  while (std::cin >> n_times) {
    const int64_t begin = now(clock);
    for (uint64_t index = 0; index < n_times; ++index) run();
    const int64_t time = now(clock) - begin;
    std::cout << time << ' ' << graph.values.back() << std::endl;
  }
}
