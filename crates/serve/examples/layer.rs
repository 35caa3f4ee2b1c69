//! A server for models of one's own, without formats and kernels: a model is a text file with the four weights of a layer
//! of two inputs and two outputs.
//!
//! ```console
//! $ echo '1 -1 0.5 3' > layer.weights
//! $ cargo run --release -p tfrt-serve --example layer -- layer.weights 127.0.0.1:8000 127.0.0.1:8001
//! $ curl localhost:8000/v2/models/layer/infer -d '{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}'
//! ```

use std::error::Error as StdError;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, Error, HostContext, RequestContext};
use tfrt_serve::{
    Description, Dim, Loader, Place, Repository, Servable, Server, Source, TensorInfo,
    VersionPolicy,
};
use tfrt_tensor::{DType, DenseHostTensor, Tensor};

struct Layer {
    description: Description,
    weights: [f32; 4],
}

impl Layer {
    fn new(weights: [f32; 4]) -> Layer {
        let tensor = |name: &str| TensorInfo {
            name: name.to_owned(),
            dtype: DType::F32,
            dims: Some(vec![Dim::Symbol("N".to_owned()), Dim::Fixed(2)]),
        };
        Layer {
            description: Description {
                platform: "weights".to_owned(),
                inputs: vec![tensor("x")],
                outputs: vec![tensor("y")],
            },
            weights,
        }
    }

    fn calculate(&self, x: &DenseHostTensor, request: &RequestContext) -> Result<Tensor, Error> {
        let reading = x.read()?;
        let rows = reading.elements::<f32>()?.chunks_exact(2);
        let [a, b, c, d] = self.weights;
        let y = rows.flat_map(|row| [row[0] * a + row[1] * c, row[0] * b + row[1] * d]);
        let y: Vec<f32> = y.map(|value| value.max(0.0)).collect();
        let extents: Vec<usize> = x.shape().extents().collect();
        DenseHostTensor::from_slice(request.host().allocator(), &extents, &y).map(Tensor::from)
    }
}

impl Servable for Layer {
    fn description(&self) -> &Description {
        &self.description
    }

    fn call(
        &self,
        request: &Arc<RequestContext>,
        inputs: Vec<(String, Tensor)>,
        _: Place,
    ) -> Vec<AnyAsyncValue> {
        let y = match &inputs[..] {
            [(_, x)]
                if x.metadata().shape.rank() == 2 && x.metadata().shape.extent(1) == Some(2) =>
            {
                x.as_dense().and_then(|x| self.calculate(x, request))
            }
            [(_, x)] => Err(Error::invalid_argument(format!(
                "input 'x' is f32 [N, 2], but was given {}",
                x.metadata()
            ))),
            _ => Err(Error::invalid_argument("expected one input, 'x'")),
        };
        vec![match y {
            Ok(y) => AnyAsyncValue::new(y),
            Err(error) => AnyAsyncValue::from_error(error),
        }]
    }
}

struct WeightFiles;

impl Loader for WeightFiles {
    fn recognises(&self, path: &Path) -> bool {
        path.extension().is_some_and(|suffix| suffix == "weights")
    }

    fn load(&self, path: &Path) -> Result<Arc<dyn Servable>, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let weights: Result<Vec<f32>, _> = text.split_whitespace().map(str::parse).collect();
        let weights = weights.map_err(|error| error.to_string())?;
        let found = weights.len();
        let weights = weights.try_into();
        let weights = weights.map_err(|_| format!("expected 4 weights, found {found}"))?;
        Ok(Arc::new(Layer::new(weights)))
    }
}

fn main() -> Result<(), Box<dyn StdError>> {
    let mut words = std::env::args().skip(1);
    let path = words
        .next()
        .ok_or("usage: layer FILE.weights ADDRESS..")?
        .into();
    let source = Source::Model { name: None, path };
    let repository = Repository::new(
        Arc::new(WeightFiles),
        vec![source],
        VersionPolicy::default(),
    );
    for verdict in repository.load_all()? {
        if let Some(reason) = verdict.reason {
            return Err(format!("{}: {reason}", verdict.name).into());
        }
    }
    let host = HostContext::builder(KernelRegistry::new()).build();
    let mut builder = Server::builder(&host, repository).allow_changes(true);
    for address in words {
        builder = builder.listen(&address)?;
    }
    let server = builder.start()?;
    eprintln!("serving at {:?}", server.addresses());
    let ended = server.serve(Duration::ZERO, Duration::from_secs(30))?;
    eprintln!("{ended:?}");
    Ok(())
}
