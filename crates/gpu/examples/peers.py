"""Measures PyTorch on the operations of `gpu_check bench`, under the same names. Products are those of true f32."""

import statistics
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.set_grad_enabled(False)


def report(name, unit, one):
    one()
    values = sorted(one() for _ in range(15))
    print(f"{name}: {statistics.median(values):.3f} {unit} ({values[2]:.3f} to {values[12]:.3f})", flush=True)


def host_time(function, n=500):
    begin = time.perf_counter()
    for _ in range(n):
        function()
    elapsed = time.perf_counter() - begin
    torch.cuda.synchronize()
    return elapsed * 1e6 / n


def device_time(function, n):
    function()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(n):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / n


print(torch.__version__, torch.cuda.get_device_name())
one = torch.ones(1, device="cuda")
report("eager add of [1], host time", "us", lambda: host_time(lambda: one + one))


def up_add_down():
    begin = time.perf_counter()
    for _ in range(50):
        there = torch.ones(1).cuda()
        (there + there).cpu()
    return (time.perf_counter() - begin) * 1e6 / 50


report("[1] up, add, down", "us", up_add_down)
report("take and give 1024 bytes", "ns", lambda: host_time(lambda: torch.empty(256, device="cuda"), 5000) * 1e3)
size = 4 << 26
big = torch.rand(64 << 20, device="cuda")
report("add of 64 Mi numbers to themselves", "GB/s", lambda: 2 * size / device_time(lambda: big + big, 20) / 1e9)
gelu = torch.nn.functional.gelu
report("gelu of 64 Mi numbers", "GB/s", lambda: 2 * size / device_time(lambda: gelu(big), 20) / 1e9)
del big
matrix, bias = torch.rand(16384, 4096, device="cuda"), torch.rand(4096, device="cuda")
report("add of a bias to [16384, 4096]", "GB/s", lambda: 2 * size / device_time(lambda: matrix + bias, 20) / 1e9)
report("softmax of [16384, 4096]", "GB/s", lambda: 2 * size / device_time(lambda: torch.softmax(matrix, 1), 20) / 1e9)
norm = torch.nn.functional.layer_norm
report("layer norm of [16384, 4096]", "GB/s", lambda: 2 * size / device_time(lambda: norm(matrix, [4096], bias, bias), 20) / 1e9)
report("sum of rows of [16384, 4096]", "GB/s", lambda: size / device_time(lambda: matrix.sum(1), 20) / 1e9)
report("transposition of [16384, 4096]", "GB/s", lambda: 2 * size / device_time(lambda: matrix.t().contiguous(), 20) / 1e9)
for n in (512, 2048, 4096):
    square = torch.rand(n, n, device="cuda") - 0.5
    report(f"product of [{n}, {n}]", "TFLOP/s", lambda: 2 * n**3 / device_time(lambda: square @ square, 10) / 1e12)

conv, pool = torch.nn.functional.conv2d, torch.nn.functional.max_pool2d
image = torch.rand(16, 64, 56, 56, device="cuda") - 0.5
size = 16 * 64 * 56 * 56 * 4
for name, c_out, k, pad in (
    ("3x3 convolution of 64 channels of [16, 56, 56]", 64, 3, 1),
    ("1x1 convolution of 64 to 256 channels of [16, 56, 56]", 256, 1, 0),
):
    filters = torch.rand(c_out, 64, k, k, device="cuda") - 0.5
    n_products = 16 * 56 * 56 * c_out * 64 * k * k
    report(name, "TFLOP/s", lambda: 2 * n_products / device_time(lambda: conv(image, filters, padding=pad), 20) / 1e12)
filters = torch.rand(64, 1, 3, 3, device="cuda")
depthwise = lambda: conv(image, filters, padding=1, groups=64)
report("3x3 depthwise convolution of [16, 64, 56, 56]", "GB/s", lambda: 2 * size / device_time(depthwise, 20) / 1e9)
report("3x3 maximum of [16, 64, 56, 56]", "GB/s", lambda: 2 * size / device_time(lambda: pool(image, 3, 1), 20) / 1e9)
report("two [16, 64, 56, 56] joined", "GB/s", lambda: 4 * size / device_time(lambda: torch.cat([image, image], 1), 20) / 1e9)
