//! Models without files, a server for them, and a client that writes and reads bytes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, AnyPromise, CancellationHook, Error, HostContext, RequestContext};
use tfrt_serve::{
    Batching, Description, Dim, Limits, Loader, Place, Repository, Servable, Server, ServerBuilder,
    Source, TensorInfo, VersionPolicy,
};
use tfrt_tensor::{DType, Tensor};

/// The longest wait of a test, which never comes to it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The input or output of a name, of floats `[N, 2]`.
fn rows(name: &str) -> TensorInfo {
    TensorInfo {
        name: name.to_owned(),
        dtype: DType::F32,
        dims: Some(vec![Dim::Symbol("N".to_owned()), Dim::Fixed(2)]),
    }
}

/// A model that multiplies floats `x` by a number.
pub struct Times {
    description: Description,
    factor: f32,
}

impl Times {
    pub fn new(factor: f32) -> Times {
        let description = Description {
            platform: "test".to_owned(),
            inputs: vec![rows("x")],
            outputs: vec![rows("y")],
        };
        Times {
            description,
            factor,
        }
    }
}

impl Servable for Times {
    fn description(&self) -> &Description {
        &self.description
    }

    fn call(
        &self,
        request: &Arc<RequestContext>,
        inputs: Vec<(String, Tensor)>,
        _: Place,
    ) -> Vec<AnyAsyncValue> {
        let [(_, x)] = &inputs[..] else {
            let message = format!("expected one input, found {}", inputs.len());
            return vec![AnyAsyncValue::from_error(Error::invalid_argument(message))];
        };
        if x.metadata().shape.extent(1) != Some(2) {
            let message = format!("input 'x' is f32 [N, 2], but was given {}", x.metadata());
            return vec![AnyAsyncValue::from_error(Error::invalid_argument(message))];
        }
        let dense = x.as_dense().unwrap();
        let allocator = request.host().allocator();
        let times = |x: f32| x * self.factor;
        vec![match dense.map::<f32, f32>(allocator, times) {
            Ok(y) => AnyAsyncValue::new(Tensor::from(y)),
            Err(error) => AnyAsyncValue::from_error(error),
        }]
    }
}

/// A model that gives what it is given, of any type and shape.
pub struct Same(pub Description);

impl Same {
    pub fn new(types: &[(&str, DType)]) -> Same {
        let tensor = |(name, dtype): &(&str, DType)| TensorInfo {
            name: (*name).to_owned(),
            dtype: *dtype,
            dims: None,
        };
        Same(Description {
            platform: "test".to_owned(),
            inputs: types.iter().map(tensor).collect(),
            outputs: types.iter().map(tensor).collect(),
        })
    }
}

impl Servable for Same {
    fn description(&self) -> &Description {
        &self.0
    }

    fn call(
        &self,
        _: &Arc<RequestContext>,
        inputs: Vec<(String, Tensor)>,
        _: Place,
    ) -> Vec<AnyAsyncValue> {
        let value = |name: &String| {
            let found = inputs.iter().find(|(own, _)| own == name);
            match found {
                Some((_, tensor)) => AnyAsyncValue::new(tensor.clone()),
                None => AnyAsyncValue::from_error(Error::invalid_argument("missing")),
            }
        };
        self.0
            .outputs
            .iter()
            .map(|info| value(&info.name))
            .collect()
    }
}

/// A model whose calls end when the test says so, or when they are cancelled.
pub struct Slow {
    description: Description,
    calls: Mutex<Vec<SlowCall>>,
    began: mpsc::SyncSender<()>,
    cancelled: mpsc::SyncSender<String>,
}

/// A call that goes on: what ends it, once, with a result, and what hears of its end before.
type SlowCall = (Arc<Mutex<Option<AnyPromise>>>, Tensor, CancellationHook);

/// The test's end of a [`Slow`] model.
pub struct Control {
    pub model: Arc<Slow>,
    began: mpsc::Receiver<()>,
    cancelled: mpsc::Receiver<String>,
}

impl Control {
    pub fn new() -> Control {
        let (began_sender, began) = mpsc::sync_channel(1000);
        let (cancelled_sender, cancelled) = mpsc::sync_channel(1000);
        let model = Arc::new(Slow {
            description: Times::new(1.0).description,
            calls: Mutex::default(),
            began: began_sender,
            cancelled: cancelled_sender,
        });
        Control {
            model,
            began,
            cancelled,
        }
    }

    /// Waits until a call has begun.
    pub fn wait_for_call(&self) {
        self.began.recv_timeout(PATIENCE).expect("a call begins");
    }

    /// Waits until a call was cancelled, and returns why.
    pub fn wait_for_cancellation(&self) -> String {
        self.cancelled
            .recv_timeout(PATIENCE)
            .expect("the call is cancelled")
    }

    /// Ends all calls that are there.
    pub fn finish(&self) {
        for (promise, tensor, _) in self.model.calls.lock().unwrap().drain(..) {
            if let Some(promise) = promise.lock().unwrap().take() {
                promise.resolve(tensor);
            }
        }
    }
}

impl Servable for Slow {
    fn description(&self) -> &Description {
        &self.description
    }

    fn call(
        &self,
        request: &Arc<RequestContext>,
        mut inputs: Vec<(String, Tensor)>,
        _: Place,
    ) -> Vec<AnyAsyncValue> {
        let (promise, value) = AnyAsyncValue::pending();
        let promise = Arc::new(Mutex::new(Some(promise)));
        let (cancelled, failing) = (self.cancelled.clone(), promise.clone());
        let hook = request.on_cancel(move |reason| {
            if let Some(promise) = failing.lock().unwrap().take() {
                promise.fail(reason.clone());
            }
            let _ = cancelled.send(reason.message().to_owned());
        });
        let tensor = inputs.remove(0).1;
        self.calls.lock().unwrap().push((promise, tensor, hook));
        let _ = self.began.send(());
        vec![value]
    }
}

/// Opens files that hold a number, by which the model multiplies.
pub struct Numbers(pub AtomicUsize);

impl Loader for Numbers {
    fn recognises(&self, path: &Path) -> bool {
        path.extension().is_some_and(|suffix| suffix == "number")
    }

    fn load(&self, path: &Path) -> Result<Arc<dyn Servable>, String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let factor = text
            .trim()
            .parse()
            .map_err(|_| format!("'{}' is no number", text.trim()))?;
        Ok(Arc::new(Times::new(factor)))
    }
}

pub fn host() -> HostContext {
    HostContext::builder(KernelRegistry::new()).build()
}

pub fn repository(sources: Vec<Source>, policy: VersionPolicy) -> Repository {
    Repository::new(Arc::new(Numbers(AtomicUsize::new(0))), sources, policy)
}

/// Starts a server of these models.
pub fn start(models: Vec<(&str, Arc<dyn Servable>)>, limits: Limits) -> Server {
    let repository = repository(Vec::new(), VersionPolicy::default());
    for (name, model) in models {
        repository.add(name, model).unwrap();
    }
    serve(repository, limits)
}

/// Starts a server of one model, whose requests are joined.
pub fn batched(name: &str, model: Arc<dyn Servable>, batching: Batching) -> Server {
    let repository = repository(Vec::new(), VersionPolicy::default());
    let repository = repository.batching(None, batching);
    repository.add(name, model).unwrap();
    serve(repository, Limits::default())
}

/// Begins a server that lets clients change its models.
pub fn builder(repository: Repository) -> ServerBuilder {
    let builder = Server::builder(&host(), repository);
    builder.allow_changes(true).threads(2)
}

pub fn serve(repository: Repository, limits: Limits) -> Server {
    let builder = builder(repository).limits(limits);
    builder.listen("127.0.0.1:0").unwrap().start().unwrap()
}

/// Starts a server of a model `double`.
pub fn double() -> Server {
    start(
        vec![("double", Arc::new(Times::new(2.0)))],
        Limits::default(),
    )
}

/// A connection to a server.
pub struct Client {
    pub stream: TcpStream,
    read: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// Returns the message of an error.
    pub fn error(&self) -> String {
        self.json()["error"]
            .as_str()
            .unwrap_or_else(|| panic!("no error: {}", self.text()))
            .to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(own, _)| own.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value.trim())
    }
}

impl Client {
    pub fn new(server: &Server) -> Client {
        let stream = TcpStream::connect(server.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client {
            stream,
            read: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Client {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"))
            .answer()
    }

    pub fn post(&mut self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.send(post(path, "", body)).answer()
    }

    /// Sends that nothing more comes.
    pub fn end(&mut self) -> &mut Client {
        self.stream.shutdown(Shutdown::Write).unwrap();
        self
    }

    /// Reads an answer.
    pub fn answer(&mut self) -> Answer {
        self.try_answer().expect("the server answers")
    }

    /// Reads an answer; `None` if the connection ends before.
    pub fn try_answer(&mut self) -> Option<Answer> {
        let length = loop {
            let end = self.read.windows(4).position(|four| four == b"\r\n\r\n");
            match end {
                Some(end) => break end + 4,
                None => self.more()?,
            }
        };
        let head: Vec<u8> = self.read.drain(..length).collect();
        let mut answer = Answer {
            status: 0,
            head: String::from_utf8(head).unwrap(),
            body: Vec::new(),
        };
        answer.status = answer.head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = answer
            .header("content-length")
            .map_or(0, |text| text.parse().unwrap());
        while self.read.len() < length {
            self.more()?;
        }
        answer.body = self.read.drain(..length).collect();
        Some(answer)
    }

    fn more(&mut self) -> Option<()> {
        let mut bytes = [0; 65536];
        match self.stream.read(&mut bytes) {
            Ok(0) => None,
            Ok(n_bytes) => {
                self.read.extend_from_slice(&bytes[..n_bytes]);
                Some(())
            }
            Err(error) => {
                let kind = error.kind();
                assert_eq!(kind, std::io::ErrorKind::ConnectionReset, "{error}");
                None
            }
        }
    }
}

/// Writes a request with a body.
pub fn post(path: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

/// A request for two rows of `double`.
pub const ROWS: &str = r#"{"id": "a", "inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [[1, 2], [3, 4.5]]}]}"#;

/// The bytes of floats.
pub fn floats(elements: &[f32]) -> Vec<u8> {
    elements
        .iter()
        .flat_map(|element| element.to_le_bytes())
        .collect()
}

/// A folder that is removed in the end.
pub struct Folder(pub std::path::PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tfrt-serve-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
