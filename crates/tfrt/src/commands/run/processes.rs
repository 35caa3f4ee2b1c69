//! [`Processes`]: tasks of programs for tests, `tfrt_dist.test_create_distributed_context`, as processes of this command,
//! where the variable `TFRT_DIST_TEST_NETWORK` asks for `processes`.

use std::env;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tfrt::HostContext;
use tfrt_dist::cluster::Address;
use tfrt_dist::kernels::{Listen, SocketNetwork, set_test_network};
use tfrt_dist::transport::Transport;
use tfrt_host::Error;

/// A network whose tasks but one are `tfrt worker`s, which print where this process does.
struct Processes(SocketNetwork);

/// A process that ends with this.
struct Worker(Child, Address);

/// Uses it, if that is asked for.
pub fn use_if_asked(host: &HostContext) {
    if env::var_os("TFRT_DIST_TEST_NETWORK").is_some_and(|chosen| chosen == "processes") {
        set_test_network(host, Arc::new(Processes(SocketNetwork::Unix)));
    }
}

impl Listen for Processes {
    fn address(&self, task: u16) -> Address {
        Listen::address(&self.0, task)
    }

    fn listen(&self, host: &HostContext, address: &Address) -> Result<Arc<dyn Transport>, Error> {
        self.0.listen(host, address)
    }

    fn start(&self, address: &Address) -> Result<Option<Box<dyn Send + Sync>>, Error> {
        let name = address.to_string();
        let started = env::current_exe().and_then(|command| {
            let mut command = Command::new(command);
            command.args(["worker", "--trust-peers", "--listen", &name]);
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()
        });
        let started =
            started.map_err(|error| Error::unavailable(format!("no worker starts: {error}")))?;
        Ok(Some(Box::new(Worker(started, address.clone()))))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended before.
        drop(self.0.kill());
        drop(self.0.wait());
        if let Address::Unix(path) = &self.1 {
            drop(std::fs::remove_file(path));
        }
    }
}
