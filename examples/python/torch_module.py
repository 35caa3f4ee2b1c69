"""Runs a module of PyTorch, for batches of any size: ``pip install torch onnx onnxscript``."""

import torch

import tfrt

torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 3)).eval()
x = torch.randn(5, 16)
# The same as torch.onnx.export(module, (x,), "mlp.onnx", ..), and then tfrt.Model("mlp.onnx").
batch = torch.export.Dim("batch")
ours = tfrt.from_torch(module, x, input_names=["x"], dynamic_shapes=[{0: batch}])
print(ours)

for n in (1, 5, 64):
    x = torch.randn(n, 16)
    # Tensors of PyTorch are read where they lie.
    (y,) = ours(x).values()
    torch.testing.assert_close(torch.from_numpy(y), module(x).detach(), rtol=1e-4, atol=1e-5)
print("as PyTorch, for batches of 1, 5 and 64")
