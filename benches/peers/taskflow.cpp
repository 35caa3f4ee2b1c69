// A graph as a taskflow: a task for each node.

#include <taskflow/taskflow.hpp>

#include "graph.hpp"

int main(int n_arguments, char** arguments) {
  Graph graph = read(n_arguments, arguments);
  tf::Executor executor(static_cast<size_t>(graph.n_threads));
  tf::Taskflow flow;
  std::vector<tf::Task> tasks;
  tasks.reserve(graph.size());
  for (uint32_t node = 0; node < graph.size(); ++node) {
    tasks.push_back(flow.emplace([&graph, node] { graph.run(node); }));
    for (uint32_t before : graph.before[node]) tasks[before].precede(tasks[node]);
  }
  serve(graph, [&] { executor.run(flow).wait(); });
}
