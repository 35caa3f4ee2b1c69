// A graph as a flow graph of oneTBB: a node that passes a message on for each node.

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>

#include <memory>

#include "graph.hpp"

int main(int n_arguments, char** arguments) {
  using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;
  Graph graph = read(n_arguments, arguments);
  tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                              static_cast<size_t>(graph.n_threads));
  tbb::flow::graph flow;
  std::vector<std::unique_ptr<Node>> nodes;
  for (uint32_t node = 0; node < graph.size(); ++node) {
    nodes.push_back(std::make_unique<Node>(
        flow, [&graph, node](const tbb::flow::continue_msg&) { graph.run(node); }));
    for (uint32_t before : graph.before[node]) tbb::flow::make_edge(*nodes[before], *nodes[node]);
  }
  serve(graph, [&] {
    for (uint32_t node = 0; node < graph.size(); ++node) {
      if (graph.before[node].empty()) nodes[node]->try_put(tbb::flow::continue_msg());
    }
    flow.wait_for_all();
  });
}
