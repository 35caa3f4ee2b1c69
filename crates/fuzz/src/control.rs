//! Properties of what tasks of a cluster say to each other: bytes that are no message are refused, and there is one way to
//! write a message.

use tfrt_async::Error;
use tfrt_dist::cluster::{Address, Cluster};
use tfrt_dist::ids::{ContextId, ObjectId, ObjectKey};
use tfrt_dist::message::{
    CreateContext, DeviceInfo, ExecuteOp, IntegerAttribute, Key, Reply, Request, RequestedOutput,
};
use tfrt_dist::transport::socket::outside::{self, read_again};
use tfrt_host::device::DeviceKind;
use tfrt_host::memory::HostBuffer;

/// Reads bytes behind the first as a message between tasks, or, if the first is odd, as an answer to one.
///
/// # Panics
///
/// If a message comes out that is not written as it was.
pub fn messages(bytes: &[u8]) {
    let Some((first, message)) = bytes.split_first() else {
        return;
    };
    let Ok(again) = read_again(message, first % 2 == 1) else {
        return;
    };
    // Clusters travel as JSON, which has many ways to say a thing, so that it is what is written that comes back.
    let Ok(third) = read_again(&again, first % 2 == 1) else {
        panic!("a message that was written is none");
    };
    assert!(again == third, "a message is written otherwise");
}

/// Returns messages and answers of each kind.
pub fn examples() -> Vec<Vec<u8>> {
    let context = ContextId(7);
    let object = |local| ObjectId {
        key: ObjectKey { prefix: 3, local },
        device: "/job:w/task:1/device:CPU:0".into(),
    };
    let output = |local| RequestedOutput {
        id: object(local),
        need_metadata: true,
    };
    let device = || DeviceInfo {
        name: "CPU:0".to_owned(),
        kind: DeviceKind::CPU,
    };
    let address = Address::parse("unix:/run/a").expect("it is one");
    let requests = [
        Request::GetDevices,
        Request::ReadClock,
        Request::CreateContext(Box::new(CreateContext {
            context,
            cluster: Cluster::of_job("w", vec![address]).expect("it has a task"),
            task: tfrt_dist::task::parse("/job:w/task:0").expect("it is a name"),
            devices: vec![device()],
            is_multi_client: true,
        })),
        Request::CloseContext { context },
        Request::SendReadyChains {
            context,
            ready_chains: vec![object(1)],
        },
        Request::KeepAlive { context },
        Request::RegisterFunction {
            context,
            name: "f".to_owned(),
            program: "func.func @f() { tfrt.return }".to_owned(),
            need_compilation: true,
        },
        Request::RemoteExecute {
            context,
            name: "f".to_owned(),
            inputs: vec![object(1)],
            outputs: vec![output(2)],
        },
        Request::RemoteExecuteOp(Box::new(ExecuteOp {
            context,
            handler: "/job:w/task:1/device:CPU:0".to_owned(),
            op: "tf.Relu".to_owned(),
            in_chain: object(1),
            out_chain: object(2),
            inputs: vec![object(3)],
            outputs: vec![output(4)],
            attributes: vec![IntegerAttribute {
                name: "axes".to_owned(),
                values: vec![1, -1],
                is_array: true,
            }],
        })),
        Request::DeleteRemoteObjects {
            context,
            objects: vec![object(1), object(2)],
        },
    ];
    let key = Key {
        context,
        name: "k".to_owned(),
    };
    let value = outside::write_value(key, &HostBuffer::from_owner([1_u8, 2]), 1 << 40);
    let asked = requests.into_iter().map(outside::write_request);
    let asked = asked.chain([value.expect("nobody writes")]);
    let answers = [
        Ok(Reply::Done),
        Ok(Reply::Devices(vec![device()])),
        Ok(Reply::ContextCreated(object(1))),
        Ok(Reply::FunctionRegistered(vec!["d".to_owned()])),
        Ok(Reply::Executed(vec![
            Ok(vec![1]),
            Err(Error::not_found("x")),
        ])),
        Ok(Reply::Clock(1 << 60)),
        Err(Error::unavailable("y")),
    ];
    let asked = asked.map(|bytes| [&[0][..], &bytes].concat());
    let answered = answers.iter().map(outside::write_answer);
    let answered = answered.map(|bytes| [&[1][..], &bytes].concat());
    asked.chain(answered).collect()
}
