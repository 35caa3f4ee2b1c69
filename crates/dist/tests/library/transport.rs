//! Transports, by the tests that each must pass.

use tfrt_dist::conformance::{self, LocalBed};

#[test]
fn the_transport_within_a_process_keeps_its_promises() {
    conformance::suite(&|| Box::<LocalBed>::default());
}

#[cfg(target_os = "linux")]
mod sockets {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use tfrt_async::queue::Task;
    use tfrt_async::{AsyncValue, ClusterTask, Error, ErrorCode};
    use tfrt_dist::cluster::Address;
    use tfrt_dist::conformance::{self, Network};
    use tfrt_dist::ids::{ContextId, TaskHandle};
    use tfrt_dist::kernels::SocketNetwork;
    use tfrt_dist::message::{Key, Payload, Reply, Request};
    use tfrt_dist::transport::socket::SocketTransport;
    use tfrt_dist::transport::{Bounds, Caller, Handler, Transport};
    use tfrt_host::HostContext;
    use tfrt_host::kernel::KernelRegistry;
    use tfrt_host::memory::HostBuffer;

    /// Sockets as a network under test. Two of its faults are left out: sockets deliver nothing twice, and two tasks of
    /// one machine can't be cut off from each other. The simulated network of `tfrt-wire` does both to the sessions that
    /// this stands on.
    struct Bed(SocketNetwork);

    impl Network for Bed {
        fn listen(&self, host: &HostContext) -> Arc<dyn Transport> {
            listen(host, &self.0.address())
        }

        fn restart(
            &self,
            transport: &dyn Transport,
            host: &HostContext,
        ) -> Option<Arc<dyn Transport>> {
            transport.close();
            Some(listen(host, transport.address()))
        }
    }

    fn listen(host: &HostContext, address: &Address) -> Arc<dyn Transport> {
        let transport = SocketTransport::listen(host, address, None);
        Arc::new(transport.expect("the address is free"))
    }

    #[test]
    fn unix_sockets_keep_the_promises() {
        conformance::suite(&|| Box::new(Bed(SocketNetwork::Unix)));
    }

    #[test]
    fn tcp_sockets_keep_the_promises() {
        conformance::suite(&|| Box::new(Bed(SocketNetwork::Tcp)));
    }

    /// Keeps what comes.
    struct Taking(std::sync::Mutex<std::sync::mpsc::Sender<(Key, Payload)>>);

    impl Handler for Taking {
        fn call(&self, _: &Caller, _: Request, _: Bounds) -> AsyncValue<Reply> {
            let error = Error::not_found("nothing");
            let task = tfrt_dist::task::parse("/job:other/task:7").unwrap();
            AsyncValue::from_error(error.with_task(task))
        }

        fn value(&self, _: &Caller, key: Key, value: Payload) -> Result<Option<Task>, Error> {
            let sender = self.0.lock().expect("nobody panics with it");
            sender.send((key, value)).expect("the test waits");
            Ok(None)
        }

        fn lost(&self, _: &Caller, _: &Error) {}
    }

    #[test]
    fn large_values_keep_their_order_and_errors_their_task() {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let network = SocketNetwork::Unix;
        let [one, two] = [(); 2].map(|()| listen(&host, &network.address()));
        let (sender, values) = channel();
        two.serve(Arc::new(Taking(std::sync::Mutex::new(sender))));
        let peer = TaskHandle::draw();
        let task = ClusterTask {
            job: "w".to_owned(),
            task: 1,
        };
        one.introduce(peer, &task, two.address());
        let key = Key {
            context: ContextId(1),
            name: "k".to_owned(),
        };
        // The first is the longest, so that the others are there before it.
        let lengths = [20 << 20, 5_000, 3, 4_096, 4_097];
        let sent = lengths.map(|len: usize| {
            let buffer = |byte: u8| HostBuffer::from_owner(vec![byte; len]);
            let payload = Payload(vec![buffer(1), buffer(2)]);
            one.send(peer, key.clone(), payload, Bounds::default())
        });
        for len in lengths {
            let (_, payload) = values
                .recv_timeout(Duration::from_secs(20))
                .expect("it comes");
            assert_eq!(payload.0.len(), 2);
            for (buffer, byte) in payload.0.iter().zip(1..) {
                let bytes = buffer.read().expect("nobody writes");
                assert!(bytes.len() == len && bytes.iter().all(|found| *found == byte));
            }
        }
        let call = one.call(peer, Request::GetDevices, Bounds::default());
        let waiting = [call.as_any().clone()];
        host.queue().await_until(&waiting, None).unwrap();
        for chain in sent {
            host.queue()
                .await_until(&[chain.as_any().clone()], None)
                .unwrap();
        }
        let call = call.settled();
        let error = call.get().expect("it is settled").unwrap_err();
        assert_eq!(error.code(), ErrorCode::NotFound);
        assert_eq!(error.to_string(), "/job:other/task:7: nothing");
    }
}
