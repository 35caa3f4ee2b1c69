"""Calls a server by Triton's own clients, as they are: HTTP and gRPC, each one after the other and on asyncio; and by
TensorFlow Serving's, if it is installed.

    pip install 'tritonclient[http,grpc]' grpcio-health-checking
    pip install tensorflow-serving-api    # with all of TensorFlow
    tfrt serve examples/layer.onnx --allow-repository &
    python examples/serve/clients.py [127.0.0.1:8000 [127.0.0.1:8001]]
"""

import asyncio
import json
import queue
import sys
import urllib.request

import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.grpc.aio as triton_grpc_aio
import tritonclient.http as triton_http
import tritonclient.http.aio as triton_http_aio
from tritonclient.utils import InferenceServerException

HTTP = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8000"
GRPC = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1:8001"
X = np.array([[1, 2], [3, -4]], np.float32)
Y = np.array([[2, 5], [1, 0]], np.float32)  # What `layer` gives for X.


def tensor(module, x=X, name="x", binary=True):
    """Makes an input of a client."""
    value = module.InferInput(name, list(x.shape), "FP32")
    if module in (triton_http, triton_http_aio):
        value.set_data_from_numpy(x, binary_data=binary)
    else:
        value.set_data_from_numpy(x)
    return value


def refused(what, call, words):
    """Checks that a call fails, with these words."""
    try:
        call()
    except InferenceServerException as error:
        assert words in str(error), error
        print(f"{what}: {error}")
    else:
        raise AssertionError(f"{what} was not refused")


def describe(name, client):
    """Asks for all that a server tells."""
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("layer")
    assert not client.is_model_ready("nope")
    for answer in (
        client.get_server_metadata(),
        client.get_model_metadata("layer"),
        client.get_model_config("layer"),
        client.get_inference_statistics("layer"),
        client.get_model_repository_index(),
    ):
        print(f"{name}:", " ".join(str(answer).split())[:150])
    client.unload_model("layer")
    assert not client.is_model_ready("layer")
    client.load_model("layer")
    assert client.is_model_ready("layer")
    refused(name, lambda: client.get_model_metadata("nope"), "unknown model: 'nope'")


def http():
    client = triton_http.InferenceServerClient(HTTP, concurrency=4)
    describe("http", client)
    for binary in (True, False):
        outputs = [triton_http.InferRequestedOutput("y", binary_data=binary)]
        for wanted in (outputs, None):
            result = client.infer("layer", [tensor(triton_http, binary=binary)], outputs=wanted, request_id="7")
            assert np.array_equal(result.as_numpy("y"), Y), result.as_numpy("y")
            assert result.get_response()["id"] == "7"
    pending = [client.async_infer("layer", [tensor(triton_http, X * n)]) for n in range(8)]
    for n, request in enumerate(pending):
        assert np.array_equal(request.get_result().as_numpy("y").shape, (2, 2)), n
    wide = np.ones((1, 3), np.float32)
    refused("http", lambda: client.infer("layer", [tensor(triton_http, wide)]), "[1, 3]")
    refused("http", lambda: client.infer("layer", [tensor(triton_http, name="z")]), "'z'")
    refused("http", lambda: client.infer("nope", [tensor(triton_http)]), "'nope'")
    for algorithm in ("gzip", "deflate"):
        result = client.infer("layer", [tensor(triton_http)], request_compression_algorithm=algorithm)
        assert np.array_equal(result.as_numpy("y"), Y), algorithm
    client.close()


def generate():
    def answer(way, **members):
        body = json.dumps(members).encode()
        with urllib.request.urlopen(f"http://{HTTP}/v2/models/layer/{way}", body) as response:
            return response.headers["content-type"], response.read().decode()

    expected = {"id": "7", "model_name": "layer", "model_version": "1", "y": Y.ravel().tolist()}
    kind, text = answer("generate", id="7", x=X.ravel().tolist())
    assert kind == "application/json" and json.loads(text) == expected, text
    kind, text = answer("generate_stream", id="7", x=X.ravel().tolist(), parameters={"stream": True})
    assert kind == "text/event-stream; charset=utf-8", kind
    events = [json.loads(event.removeprefix("data: ")) for event in text.split("\n\n") if event]
    assert events == [expected], text
    print("generate:", text.strip())


async def http_aio():
    async with triton_http_aio.InferenceServerClient(HTTP) as client:
        assert await client.is_server_ready() and await client.is_model_ready("layer")
        results = await asyncio.gather(*(client.infer("layer", [tensor(triton_http_aio)]) for _ in range(16)))
        assert all(np.array_equal(result.as_numpy("y"), Y) for result in results)
        print("http aio:", len(results), "answers")


def grpc():
    client = triton_grpc.InferenceServerClient(GRPC)
    describe("grpc", client)
    result = client.infer("layer", [tensor(triton_grpc)], request_id="7", client_timeout=5)
    assert np.array_equal(result.as_numpy("y"), Y) and result.get_response().id == "7"
    wide = np.ones((1, 3), np.float32)
    refused("grpc", lambda: client.infer("layer", [tensor(triton_grpc, wide)]), "[1, 3]")
    refused("grpc", lambda: client.infer("nope", [tensor(triton_grpc)]), "'nope'")
    answers = queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    for name in ("layer", "nope", "layer"):
        client.async_stream_infer(name, [tensor(triton_grpc)])
    got = [answers.get(timeout=10) for _ in range(3)]
    assert [error is None for _, error in got] == [True, False, True], got
    assert np.array_equal(got[2][0].as_numpy("y"), Y)
    client.stop_stream()
    print("grpc stream: 3 answers, one of them:", got[1][1])
    client.close()


async def grpc_aio():
    async with triton_grpc_aio.InferenceServerClient(GRPC) as client:
        assert await client.is_server_ready()
        results = await asyncio.gather(*(client.infer("layer", [tensor(triton_grpc_aio)]) for _ in range(16)))
        assert all(np.array_equal(result.as_numpy("y"), Y) for result in results)

        async def requests():
            for _ in range(4):
                yield {"model_name": "layer", "inputs": [tensor(triton_grpc_aio)]}

        n_answers = 0
        async for result, error in client.stream_infer(requests()):
            assert error is None and np.array_equal(result.as_numpy("y"), Y)
            n_answers += 1
        print("grpc aio:", len(results), "answers, and", n_answers, "on a stream")


def health():
    import grpc as channels
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with channels.insecure_channel(GRPC) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        for name in ("", "layer"):
            assert check(health_pb2.HealthCheckRequest(service=name)).status == 1
        try:
            check(health_pb2.HealthCheckRequest(service="nope"))
        except channels.RpcError as error:
            print("health:", error.code(), error.details())


    with channels.insecure_channel(GRPC) as channel:
        states = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service="layer"))
        print("health:", next(states).status, "now")
        states.cancel()


def tensorflow_serving():
    try:
        import grpc as channels
        from tensorflow.core.framework import tensor_pb2, types_pb2
        from tensorflow_serving.apis import (
            get_model_metadata_pb2,
            get_model_status_pb2,
            model_service_pb2_grpc,
            predict_pb2,
            prediction_service_pb2_grpc,
        )
    except ImportError as error:
        print(f"TensorFlow Serving: SKIPPED, {error}")
        return
    with channels.insecure_channel(GRPC) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "layer"
        x = request.inputs["x"]
        x.dtype = types_pb2.DT_FLOAT
        for extent in X.shape:
            x.tensor_shape.dim.add(size=extent)
        x.float_val.extend(X.ravel())
        answer = stub.Predict(request)
        x.ClearField("float_val")
        x.tensor_content = X.tobytes()
        for y in (answer.outputs["y"], stub.Predict(request).outputs["y"]):
            assert np.array_equal(np.array(y.float_val, np.float32).reshape(Y.shape), Y), y
        assert answer.model_spec.version.value == 1 and answer.model_spec.signature_name == "serving_default"
        asked = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        asked.model_spec.name = "layer"
        signatures = get_model_metadata_pb2.SignatureDefMap()
        stub.GetModelMetadata(asked).metadata["signature_def"].Unpack(signatures)
        inputs = signatures.signature_def["serving_default"].inputs
        assert inputs["x"].dtype == types_pb2.DT_FLOAT and [dim.size for dim in inputs["x"].tensor_shape.dim] == [-1, 2]
        state = get_model_status_pb2.GetModelStatusRequest()
        state.model_spec.name = "layer"
        versions = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(state).model_version_status
        assert [(own.version, own.state) for own in versions] == [(1, get_model_status_pb2.ModelVersionStatus.AVAILABLE)]
        x.CopyFrom(tensor_pb2.TensorProto(dtype=types_pb2.DT_INT64))
        try:
            stub.Predict(request)
        except channels.RpcError as error:
            assert error.code() == channels.StatusCode.INVALID_ARGUMENT
            print("TensorFlow Serving:", error.details())
        else:
            raise AssertionError("another type was not refused")


if __name__ == "__main__":
    http()
    generate()
    asyncio.run(http_aio())
    grpc()
    asyncio.run(grpc_aio())
    health()
    tensorflow_serving()
    print("all is well")
